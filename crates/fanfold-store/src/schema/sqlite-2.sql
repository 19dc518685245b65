-- 2: full text. All of it can be made anew from the messages.

-- The words of each message, by its number. They are given in small letters with a space between them, so that the
-- simplest tokenizer finds the words that queries are taken apart into. The text itself is not kept again.
CREATE VIRTUAL TABLE texts USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');

-- What a search asks of the messages that have its words, beside those pages that are full of JSON.
CREATE TABLE indexed (
    number INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    role INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- Every word once, and the words by three letters of them: parts of words are looked up here, never in the texts.
CREATE TABLE vocabulary (
    key INTEGER PRIMARY KEY,
    word TEXT NOT NULL UNIQUE
) STRICT;
CREATE VIRTUAL TABLE parts USING fts5 (
    word, content = 'vocabulary', content_rowid = 'key', tokenize = 'trigram', detail = 'none', columnsize = 0
);

-- `indexed`, in marks: the number up to which messages are.
