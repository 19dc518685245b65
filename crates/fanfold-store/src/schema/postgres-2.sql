-- 2: full text. All of it can be made anew from the messages.

-- The words of each message with their places, and what else a search asks of it. `exactness`: 0 if every place is
-- there; 1 if there are more than PostgreSQL keeps; 2 if there are more words than it keeps.
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

-- Every word once, and all three letters in a row of it: parts of words are looked up here, never in the texts.
CREATE TABLE vocabulary (
    word TEXT COLLATE "C" PRIMARY KEY,
    thirds TEXT[] NOT NULL
);
CREATE INDEX vocabulary_by_thirds ON vocabulary USING gin (thirds);

-- Messages that are not indexed yet. Their numbers are no measure: a lower one may be committed later.
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
