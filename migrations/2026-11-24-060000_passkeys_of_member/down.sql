DROP INDEX passkeys_of_member;
