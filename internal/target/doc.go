// Package target holds SIMULATORS of the systems that changes are applied to: an ad platform, [Ads], and a deployment
// platform, [Deploys]. Each is a real HTTP server with its own state, but no product's API: it exists so that tests, the
// demo and a first evening with cutonce have something honest to change, to break and to count.
//
// The promise: everything is deterministic from the seed and the requests received (names, owners, budgets, commits,
// ETags, IDs); with a nil clock the times are too. What it counts is what it did: an effect, its log entry, its
// counter and, where keys are honoured, its stored answer are made under one lock, and reads see every earlier write.
//
// It does not promise durability (a restart forgets everything), rate limits, or protection against a hostile
// caller: the bearer credential is its only door, and whoever holds it may also script faults. It does not check
// permissions at a change; it answers questions about them, as many platforms' own permission systems do, and
// records on whose behalf the caller said it acted.
//
// # Where to start
//
// [NewAds] and [NewDeploys] make one, [Serve] runs it, [Control] drives it from another process, [Platform] is the part that
// every simulated platform shares: faults, gates, idempotency keys, counters, log and permissions.
//
// # The ad platform's API
//
// Every request needs "Authorization: Bearer TOKEN"; anything else gets 401. Errors are
// {"error":{"code":"…","message":"…"}}. GET /healthz is the only open path.
//
//	GET /v1/campaigns?query=&status=&cursor=&limit=
//	    200 {"campaigns":[CAMPAIGN…],"total":N,"next_cursor":"…"}    next_cursor is absent on the last page
//	    query is a substring of the name, compared after NFKC and lower-casing; status is enabled, paused or
//	    removed; limit is 1 to 100 (20 if absent). A cursor is only good for the query and status that made it.
//	GET /v1/campaigns/{id}
//	    200 CAMPAIGN with an ETag header, 404 campaign_not_found
//	    CAMPAIGN = {"id":"2001001","account_id":"acc-jp-01","name":"秋の特価_検索","status":"enabled",
//	                "owner":"sato@agency.example","currency":"JPY","daily_budget":"20000","etag":"\"…\""}
//	PATCH /v1/campaigns/{id}   {"daily_budget":"30000","currency":"JPY"}
//	    200 CAMPAIGN + "change_id":"chg-000001", with the new ETag header
//	    Content-Type must be application/json; both members are required strings, no others, none twice.
//	    If-Match: the ETag last read, or *; optional. 412 etag_mismatch if the campaign has moved.
//	    Idempotency-Key: the request key, at most 255 visible ASCII characters; optional. It is written to the
//	      change history whether or not keys are honoured. Where they are: the same key with the same method, path
//	      and body gets the first answer again (with Idempotency-Replayed: true), 409 in_progress while the first
//	      is being worked on, and 422 key_reused with any other body. Answers to malformed requests and injected
//	      answers are not stored; every other answer is (a 412 too), for the key's retention.
//	    X-On-Behalf-Of, X-Approved-By, X-Agent: recorded in the log, believed, never checked.
//	    Refusals, none of which has an effect: 400 invalid_body, invalid_key; 404 campaign_not_found;
//	      409 in_progress; 412 etag_mismatch; 413 too_large; 415 unsupported_media_type; 422 invalid_amount,
//	      amount_out_of_range, currency_mismatch, campaign_removed, key_reused
//	    KRW and JPY amounts are integers; USD amounts have exactly two decimals.
//	GET /v1/changes?key=K[&campaign=ID]
//	    200 {"changes":[CHANGE…]}, empty if that key changed nothing; consistent read after write
//	    CHANGE = {"change_id":"chg-000001","time":"2026-…Z","campaign_id":"2001001","before":"20000",
//	              "after":"30000","currency":"JPY","etag":"\"…\"","key":"K","on_behalf_of":"sato@agency.example",
//	              "approved_by":"kim@agency.example","agent":"…","source":"api"}
//	GET /v1/permissions?user=U&campaign=ID&verb=read|write
//	    200 {"allowed":true,"reason":"granted"}; reasons of a no: unknown_user, not_granted, withdrawn,
//	    unknown_campaign
//	GET /v1/log[?campaign=ID][&key=K]
//	    200 {"entries":[CHANGE…]}, oldest first; source is api, or console for a change made outside this API
//
// # The deployment platform's API
//
// The door, the errors, the people's headers and idempotency keys are those of the ad platform. An environment's version
// is the ID of the deployment that is active in it, and its ETag is that ID in quotes. A change's resource, for faults,
// counters, permissions and waits, is "SERVICE/ENVIRONMENT".
//
//	GET /v1/services[?user=U]
//	    200 {"services":[{"name":"checkout-api","environments":["production","staging"]}…]}; with user, only those
//	    environments that this person may read, and only services that have one
//	GET /v1/services/{service}/environments/{environment}
//	    200 {"service":"…","environment":"…","etag":""dep-000106"","current":DEPLOYMENT,"deployments":6} with an ETag
//	    header, 404 service_not_found or environment_not_found
//	GET /v1/deployments?service=&environment=&status=&user=&cursor=&limit=
//	    200 {"deployments":[DEPLOYMENT…],"total":N,"next_cursor":"…"}, the newest first; status is active, superseded,
//	    failed or rolled_back; with user, only what this person may read; limit is 1 to 100 (20 if absent). A cursor is
//	    only good for the search that made it.
//	GET /v1/deployments/{id}
//	    200 DEPLOYMENT, 404 deployment_not_found
//	    DEPLOYMENT = {"id":"dep-000106","service":"checkout-api","environment":"production","version":"v2026.11.3",
//	                  "commit":"(40 hex)","author":"choi@platform.example","time":"2026-11-27T08:59:00Z",
//	                  "contains_migration":false,"status":"active","source":"pipeline"}
//	    A rollback is a deployment too: source is rollback, its author is the human it was made for, and "activates" is
//	    the deployment whose build runs again. source is console for what someone else deployed by the control API.
//	POST /v1/services/{service}/environments/{environment}/rollback   {"to_deployment_id":"dep-000105"}
//	    201 DEPLOYMENT (the new, active one) + "change_id":"chg-000001","from_deployment_id":"dep-000106", with the new
//	    ETag header. What was active is rolled_back. The ID of an earlier rollback stands for what it activated; a later
//	    deployment's ID rolls forward.
//	    If-Match: the ETag last read, or *; optional. 412 etag_mismatch if another deployment is active by now; it is
//	      checked before all that depends on the history.
//	    Idempotency-Key, X-On-Behalf-Of, X-Approved-By, X-Agent: as at the ad platform.
//	    Refusals, none of which has an effect: 400 invalid_body, invalid_key; 404 service_not_found,
//	      environment_not_found; 409 in_progress; 412 etag_mismatch; 413 too_large; 415 unsupported_media_type;
//	      422 unknown_deployment, deployment_failed, already_current, key_reused
//	GET /v1/rollbacks?key=K[&service=&environment=]
//	    200 {"rollbacks":[ROLLBACK…]}, empty if that key changed nothing; consistent read after write
//	    ROLLBACK = {"change_id":"chg-000001","time":"2026-…Z","service":"…","environment":"…",
//	                "from_deployment_id":"dep-000106","to_deployment_id":"dep-000105","deployment_id":"dep-010001",
//	                "key":"K","on_behalf_of":"mori@platform.example","approved_by":"…","agent":"…","source":"api"}
//	GET /v1/permissions?user=U&service=&environment=&verb=read|rollback
//	    200 {"allowed":true,"reason":"granted"}; reasons of a no: unknown_user, not_granted, withdrawn,
//	    unknown_environment
//	GET /v1/log[?service=&environment=][&key=K]
//	    200 {"entries":[ROLLBACK…]}, oldest first; source is console for a deployment made outside this API
//
// # The control API (simulator only)
//
// The same server and credential, under /_sim/. Bodies are strict JSON; a wrong script is 400 and changes nothing.
//
//	POST   /_sim/faults         [FAULT…]   append rules; see [Fault] and [Step]
//	GET    /_sim/faults         200 [FAULT…] still waiting;  DELETE forgets them
//	GET    /_sim/counters       200 COUNTERS; with ?key=K the TALLY of one key; see [Counters]
//	POST   /_sim/release        {"gate":"NAME"}   open a gate for good; "" opens all
//	GET    /_sim/wait?stage=&op=&resource=&key=&n=&timeout_ms=   200 when it has happened, 504 when not in time
//	POST   /_sim/permissions    {"user":"…","verb":"write","resource":"2001001","allowed":false}
//	POST   /_sim/settings       {"honour_keys":true}
//	POST   /_sim/reset          back to the seed: data, permissions, faults, keys, counters, log; held requests are cut
//	POST   /_sim/campaigns      CAMPAIGN (without etag)   add one
//	POST   /_sim/campaigns/{id} {"daily_budget":"…","name":"…","status":"…"}   someone else moves the target
//	POST   /_sim/deployments    {"service":"…","environment":"…","version":"…","author":"…","contains_migration":false,
//	                             "failed":false}   someone else deploys; 200 DEPLOYMENT
//	POST   /_sim/deployments/{id} {"status":"failed"}   a build that is not usable any more; superseded undoes it
//
// A fault is one rule of a queue. Each request takes the first rule that matches it, uses it up once, and goes
// through its steps; a request that no rule matches is served as documented above:
//
//	{"op":"change","resource":"2001001","times":1,"do":[{"action":"drop_after_effect"}]}
package target
