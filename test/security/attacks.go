package main

import "slices"

// attacks are all of them, by where they strike.
func attacks() []attack {
	return slices.Concat(tokenAttacks, consoleAttacks, authorityAttacks, inputAttacks, networkAttacks)
}

// tokenAttacks are at the three doors that take a token: the JSON API reading, the JSON API applying, MCP applying.
var tokenAttacks = []attack{
	{"T1", "algorithm confusion: HS256 with the RSA public key as its secret, in eight spellings",
		"asymmetric algorithms only, and the one that the key was published for", algConfusion},
	{"T2", "alg none in any spelling, a stripped signature", "no such algorithm is known", algNone},
	{"T3", "kid as a path, as SQL, as a URL, as no text at all", "a kid is looked up among the issuer's published keys and nowhere else", kidInjection},
	{"T4", "a key of the attacker's by jku, x5u, jwk or x5c", "keys come from the configured issuer alone; the attacker's server is never called", keyByHeader},
	{"T5", "an audience list without us, audiences that resemble ours", "compared exactly", wrongAudience},
	{"T6", "no audience at all", "required", noAudience},
	{"T7", "an expired token, one that never expires", "exp is required and compared with 30 s of leeway", expired},
	{"T8", "a token from the future (nbf, iat)", "compared with 30 s of leeway", notYet},
	{"T9", "another issuer's key, another issuer's tenant, an issuer that resembles ours",
		"keys belong to one issuer, tenants to the issuers that may speak for them, names are compared exactly", issuerMixUp},
	{"T10", "300 made-up key IDs, to make us hammer the issuer", "the keys are fetched at most every ten seconds, whatever is asked for", keyFlood},
	{"T11", "ID, refresh and logout tokens as access tokens", "recognised by typ, at_hash and audience", notAccessTokens},
	{"T12", "tokens of 17, 40 and 80 KiB", "16 KiB at most, headers 64 KiB", oversized},
	{"T13", "another's payload or signature, a claim given twice, an algorithm that the key is not for, a critical extension",
		"verified as it came", tampered},
	{"T14", "a good token in a cookie, a query, a body, another scheme, twice", "read from one Authorization: Bearer header and nowhere else", tokenElsewhere},
}

// consoleAttacks are at the people's door.
var consoleAttacks = []attack{
	{"S1", "a session's cookie replayed after sign-out, and after sign-out everywhere", "a session is a row, and the row is gone", replayedSession},
	{"S2", "a session cookie planted before the person signs in", "every sign-in makes a new name; a planted one is nobody's", fixedSession},
	{"S3", "two session cookies, one without __Host-, malformed ones", "none of them counts", twoCookies},
	{"S4", "a form of another site posts a decision (Sec-Fetch-Site, Origin, Origin: null)", "refused before the session is looked at", crossSite},
	{"S5", "a page of ours in another site's frame, script in a page of ours", "CSP on every answer of the console: no script but its own file, Trusted Types, no frame, no foreign form target", framed},
	{"S6", "next= leads to another site", "only a path of ours is followed", openRedirect},
	{"S7", "another Host, X-Forwarded-Host", "addresses come from the configuration, never from a request", hostGames},
	{"S8", "an attempt to sign in that another browser began, a forged state, a code of another attempt, a replayed answer",
		"state is sealed and bound to the browser; PKCE binds the code to the attempt", signInMixUp},
	{"S9", "a forged ID token: none, another key, the client secret as HMAC key, another audience, nonce, issuer, party, an expired one",
		"verified against the provider's keys, this client and this attempt", forgedIDToken},
	{"S10", "a session's cookie at the API and at MCP, a token at the console", "each door knows its own kind", wrongDoor},
	{"S11", "a decision by GET, by HEAD, by a method override", "nothing changes on GET; overrides are not known", byAnotherMethod},
}

// authorityAttacks come from somebody who is known, and may not do this.
var authorityAttacks = []attack{
	{"A1", "another tenant's change, by every route, tool and page that takes an ID", "not found, as if it did not exist", otherTenant},
	{"A2", "another agent's change in the same tenant: read, ask, apply, cancel, undo", "an agent knows its own changes alone", otherAgents},
	{"A3", "telling a foreign ID from one that does not exist", "the answers are the same", enumeration},
	{"A4", "the requester approves: as a person, in other letters, from another issuer, as the owner of the agent",
		"people are compared by name in any letters, whichever issuer knows them", ownApproval},
	{"A5", "an agent approves: with act, through an agent's or an unknown client, as a client by itself", "only a surely human caller decides", agentApproves},
	{"A6", "a person approves without the group: by role, by a group that resembles it", "groups are compared exactly; no role stands in for one", withoutGroup},
	{"A7", "an approval of something else: another change's digest, none, half of one", "a decision carries the digest of the whole document", staleDigest},
	{"A8", "deciding and applying after the time is over, while nothing sweeps", "the database's clock is asked in the statement that moves the change", afterExpiry},
	{"A9", "applying what was not approved, was rejected, cancelled, denied", "only what is approved can be claimed", notApproved},
	{"A10", "policy, approvals, approved_by, tenant and the like in bodies, queries and headers", "closed schemas; who calls is in the token alone", influence},
	{"A11", "operators' work by agents, requesters, approvers and auditors: resolve, freeze", "a human with the role", operatorsWork},
	{"A12", "a token without the scope, or with one that resembles it", "compared exactly, at every call", withoutScope},
	{"A13", "an agent that calls without end, at both doors", "callers, tenants and actions are counted; others are served, people decide and freeze meanwhile", endlessly},
	{"A14", "fifty prepares at once, to bury the queue and the platform", "the transaction that stores a change counts what its requester has open", buryTheQueue},
	{"A15", "an approver who was removed: by another spelling, another issuer, a session from before; what they had approved is applied; they restore themselves",
		"people are compared by name in any letters, whichever issuer knows them; claims compare when somebody was last removed", afterRemoval},
	{"A16", "the service's statements with the tenant's condition taken out, and what its role has no right to",
		"row-level security, forced, shows the serving role one tenant, and it may remove, rewrite and redefine nothing", withoutCondition},
}

// inputAttacks are in what is sent.
var inputAttacks = []attack{
	{"I1", "script in a campaign's name, a person's name, a reason, a justification, on every page", "templates escape by context; the CSP runs none", scriptInNames},
	{"I2", "another reading direction and invisible characters in what an approver sees", "refused in what callers write, shown as what they are in what a platform says", hiddenCharacters},
	{"I3", "line breaks and quotes towards the log: in paths, request IDs, key IDs, user agents, reasons", "one JSON object for each line", logInjection},
	{"I4", "CEL in reasons and justifications", "texts are values, never expressions", celInTexts},
	{"I5", "paths and headers towards the platform: ../, %2f, CRLF, a query in an ID; in look-ups as well", "IDs are digits; what goes into an address is escaped",
		towardsTheTarget},
	{"I6", "IDs in the address that are none: traversal, encoded slashes, SQL, 8 KiB", "not found", oddIDs},
	{"I7", "SQL and nonsense in filters and cursors", "parameters are bound, cursors say nothing that the caller may not see", oddFilters},
	{"I8", "JSON: a name twice, 30,000 levels, a tail, a BOM, NaN, bytes that are no UTF-8", "read strictly or refused whole", oddJSON},
	{"I9", "numbers: 1e999999, 30 digits, negative, fractions, texts, a zero", "exact and within the schema", oddNumbers},
	{"I10", "a megabyte of reason, chunked as well; compressed; 10,000 fields; a long language header", "64 KiB at most, counted as it is read", tooMuch},
	{"I11", "JSON that calls itself a form, a text, another charset", "a body says that it is plain JSON", oddMediaTypes},
	{"I12", "another agent's idempotency key, one with another body, one with spaces", "keys belong to one caller and one body", foreignKeys},
}

// networkAttacks are on the way to the service and from it.
var networkAttacks = []attack{
	{"N1", "issuers, keys and platforms configured at inner addresses over plain HTTP, by file:, with credentials in the URL", "the start is refused", innerAddresses},
	{"N2", "the platform redirects look-ups and changes to another server", "no redirect is followed; the credential goes to one host", platformAstray},
	{"N3", "an issuer's keys are redirected to another server", "no redirect is followed; nobody gets in by those keys", issuerAstray},
	{"N4", "headers that come a byte at a time, a body that never ends, 40 at once", "5 s for headers, 30 s for a body; others are served meanwhile", slowly},
	{"N5", "request smuggling: two lengths, a length and chunks, odd encodings, folded and broken headers", "refused, and the connection is closed", smuggling},
	{"N6", "the development issuer and its sign-in, reached through the production command", "the production command has no such routes", developmentDoors},
	{"N7", "metrics, profiles, the platform's controls on the public listener", "they are on a listener of their own, or nowhere", innerDoors},
	{"N8", "MCP from a page of another site, by Origin and by Sec-Fetch-Site", "refused before the token is looked at", foreignOrigin},
	{"N9", "MCP: an unknown protocol version, a session ID, a batch, other methods, garbage", "refused; nothing of a batch is run", oddProtocol},
	{"N10", "MCP: an apply with more arguments, in other types, of the wrong tool", "closed schemas", moreArguments},
	{"N11", "the caller's token, cookies and headers, seen by the platform", "nothing of the caller's is passed on but a name", passedOn},
	{"N12", "secrets in what the service said in all of this: answers, errors, logs, metrics", "secrets and tokens are never written; internal errors stay inside", secretsSaid},
}
