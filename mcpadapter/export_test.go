package mcpadapter

// Every test has our own answers checked against their schemas.
func init() { checksOwn = true }
