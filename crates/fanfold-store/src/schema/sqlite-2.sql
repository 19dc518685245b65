-- Step 2: the full text index. It can be rebuilt from the messages.

-- The words of each message, by message number. They are inserted normalized and separated by spaces, so that the
-- `ascii` tokenizer yields the same words as the query parser. The table is contentless: the text is not stored again.
CREATE VIRTUAL TABLE texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');

-- The columns of a message that a search filters by, apart from the `nodes` pages, which are full of JSON.
CREATE TABLE indexed (
    number INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    role INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- Every distinct word, and a trigram index of the words, to expand prefixes and parts of words.
CREATE TABLE vocabulary (
    key INTEGER PRIMARY KEY,
    word TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE parts USING fts5 (
    word, content = 'vocabulary', content_rowid = 'key', tokenize = 'trigram', detail = 'none', columnsize = 0
);

-- `indexed` in marks: the highest message number in the index.
