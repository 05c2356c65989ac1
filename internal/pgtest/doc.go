// Package pgtest gives each test a real Postgres database of its own, cloned from a migrated template and dropped after
// the test. It is for tests only.
//
// The server is, in this order: the one that TEST_DATABASE_URL names (a role that may create databases); a container, when
// an engine answers and CUTONCE_TEST_CONTAINERS is not 0 (1 insists on it); a private cluster of package pglocal. A test
// that can have none of them fails with the command that installs Postgres; it is never skipped.
// CUTONCE_TEST_POSTGRES_MAJOR asks for a private cluster of that major version and for nothing else.
//
// A private cluster is kept between runs in the temporary folder, one for each test binary that runs at the same time, and
// ends with the binary. It gives up durability but not the meaning of any setting a client can see.
//
// Promise: databases of different tests share nothing but the server's roles and its connection limit. Not promised: that
// a test which stops the shared server leaves the others alone; [NewServer] is for those.
//
// Start at [New].
package pgtest
