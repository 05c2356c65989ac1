package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
)

// listFreshMs is how long a client may keep the list of tools. Under Granted it depends on the token's scopes, which a
// step-up changes, so it is not kept at all.
const listFreshMs = 60_000

// serve builds the server of one language.
func (h *Handler) serve(lang string) error {
	texts := h.deps.Catalog.In(lang)
	tools, err := h.build(texts)
	if err != nil {
		return err
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "cutonce", Title: "cutonce", Version: h.deps.Version},
		&mcp.ServerOptions{
			Instructions: texts.T("tool.instructions", nil),
			Logger:       quiet(h.deps.Log),
			// Only tools: the default would also announce the deprecated logging.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			SetCacheable: h.cacheable,
		},
	)
	h.tools[lang] = map[string]*tool{}
	for _, t := range tools {
		h.tools[lang][t.spec.Name] = t
		server.AddTool(t.spec, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return h.call(ctx, t, r.Params.Arguments), nil
		})
	}
	// The first is the outermost: nothing of ours runs outside the recovery.
	server.AddReceivingMiddleware(h.contain, toolsOnly, h.list)
	h.servers[lang] = server
	return nil
}

// serverFor picks the cached server of the caller's language.
func (h *Handler) serverFor(r *http.Request) *mcp.Server {
	if c, ok := callerOf(r.Context()); ok {
		return h.servers[c.texts.Lang]
	}
	return h.servers[catalog.Languages[0]]
}

// cacheable keeps every list to the one who asked: it may depend on their token. The SDK's default is "public".
func (h *Handler) cacheable(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
	c.CacheScope = "private"
	if h.deps.Listing == Grantable {
		c.TTLMs = listFreshMs
	}
}

// contain ends a panic and an unexpected error here: the SDK would let the one kill the process and send the other's text.
func (h *Handler) contain(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				res, err = h.afterPanic(ctx, method, req, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		res, err = next(ctx, method, req)
		var ours *jsonrpc.Error
		if err != nil && !errors.As(err, &ours) {
			return h.internalError(ctx, method, err)
		}
		return res, err
	}
}

func (h *Handler) afterPanic(ctx context.Context, method string, req mcp.Request, cause error) (mcp.Result, error) {
	call, ok := req.(*mcp.CallToolRequest)
	c, known := callerOf(ctx)
	if !ok || !known {
		return h.internalError(ctx, method, cause)
	}
	t := h.tools[c.texts.Lang][call.Params.Name]
	return h.result(ctx, c, t, failed(answer.Writer{Texts: c.texts, RequestID: c.requestID}, cause)), nil
}

func (h *Handler) internalError(ctx context.Context, method string, cause error) (mcp.Result, error) {
	c, _ := callerOf(ctx)
	h.log(ctx, c, "the call failed", method, answer.Body{Code: string(fault.Internal)}, cause)
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error, request " + c.requestID}
}

// toolsOnly refuses what is not announced. The SDK would answer it, with empty lists.
func toolsOnly(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		for _, family := range []string{"prompts/", "resources/", "completion/", "logging/"} {
			if strings.HasPrefix(method, family) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has tools only"}
			}
		}
		return next(ctx, method, req)
	}
}

// list hides what the caller is not to be shown. The tools are shared by all requests and are not changed.
func (h *Handler) list(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		all, ok := res.(*mcp.ListToolsResult)
		c, known := callerOf(ctx)
		if err != nil || !ok || !known {
			return res, err
		}
		shown := *all
		shown.Tools = make([]*mcp.Tool, 0, len(all.Tools))
		for _, spec := range all.Tools {
			if h.shows(c, h.tools[c.texts.Lang][spec.Name]) {
				shown.Tools = append(shown.Tools, spec)
			}
		}
		return &shown, nil
	}
}

func (h *Handler) shows(c caller, t *tool) bool {
	switch {
	case len(t.scopes) == 0:
		return true
	case h.deps.Listing == Granted:
		return len(c.who.Missing(t.scopes...)) == 0
	}
	return h.deps.CanGrant == nil || h.deps.CanGrant(c.who, t.scopes)
}
