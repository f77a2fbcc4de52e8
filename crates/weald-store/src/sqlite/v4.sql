-- No table changes. Records have outcomes and fields that earlier versions can't read, or would drop when they write a
-- record again: this version keeps them out.
SELECT 1;
