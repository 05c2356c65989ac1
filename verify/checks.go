package verify

// Checks are all checks in their order. Adding one is a file check_NAME.go and a line here.
func Checks() []Check {
	return []Check{
		durability, databaseClock, claimGuard, targetLock, attemptFence, digest, expiry, fourEyes, quorum, removal, caps, drift, lease, unknown, lateProof,
		neverLeft, safeSender, doubt, recheck, freeze, ownWord, twoWords, restored, chain, events, unmatched, secret, tokens, identity, tenants,
	}
}
