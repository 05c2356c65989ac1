package rollback

import (
	"net/http"

	"github.com/cutonce/cutonce/connector/httptarget"
)

// documented are the platform's documented refusals of a rollback, each of which says that nothing was changed. Status and
// code must both match: a gateway in front of the platform answers with the same statuses, and knows nothing of what is
// behind it.
//
// Left out on purpose, and therefore unknown: 409 in_progress (the first request with our key is being worked on), 422
// key_reused (our key never goes with two bodies, so something is very wrong), 403, 429, every 2xx but 201, every 5xx.
var documented = httptarget.Documented{
	Refused: httptarget.Refusals{
		http.StatusBadRequest:            {"invalid_body", "invalid_key"},
		http.StatusUnauthorized:          {"unauthenticated"},
		http.StatusNotFound:              {"service_not_found", "environment_not_found"},
		http.StatusRequestEntityTooLarge: {"too_large"},
		http.StatusUnsupportedMediaType:  {"unsupported_media_type"},
		http.StatusUnprocessableEntity:   {"unknown_deployment", "deployment_failed"},
	},
	Moved:   httptarget.Refusals{http.StatusPreconditionFailed: {"etag_mismatch"}},
	Already: httptarget.Refusals{http.StatusUnprocessableEntity: {"already_current"}},
}
