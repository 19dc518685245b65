-- Step 2: the full text index. It can be rebuilt from the messages.

-- The words of each message with their positions, and the columns that a search filters by. `exactness`: 0 if all
-- positions are stored; 1 if positions were dropped at PostgreSQL's limits; 2 if words were dropped, too.
CREATE TABLE texts (
    number BIGINT PRIMARY KEY,
    lane BIGINT NOT NULL,
    depth BIGINT NOT NULL,
    role BIGINT NOT NULL,
    at BIGINT NOT NULL,
    exactness BIGINT NOT NULL,
    words TSVECTOR NOT NULL
);
CREATE INDEX texts_by_words ON texts USING gin (words);
CREATE INDEX texts_inexact ON texts (number) WHERE exactness > 0;

-- Every distinct word with its trigrams, to expand prefixes and parts of words.
CREATE TABLE vocabulary (
    word TEXT COLLATE "C" PRIMARY KEY,
    thirds TEXT[] NOT NULL
);
CREATE INDEX vocabulary_by_thirds ON vocabulary USING gin (thirds);

-- Messages that are not indexed yet. A high-water mark would miss some: a lower number may be committed later.
CREATE TABLE pending (
    number BIGINT PRIMARY KEY
);
INSERT INTO pending SELECT number FROM nodes;
CREATE FUNCTION note_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fanfold.pending SELECT number FROM fresh;
    RETURN NULL;
END
$$;
CREATE TRIGGER nodes_are_pending AFTER INSERT ON nodes
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_pending();
