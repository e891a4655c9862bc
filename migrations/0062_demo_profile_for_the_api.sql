-- The page of a consent is opened by a link, before the API knows the business: in the role of admins.
GRANT EXECUTE ON FUNCTION accepts_placeholders TO mason_admin;
