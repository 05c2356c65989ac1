package api

import (
	_ "embed"
	"net/http"
)

// OpenAPI is the description of this door, written by hand. Every exchange of the tests is held up to it.
//
//go:embed openapi.yaml
var OpenAPI []byte

// describe shows the description.
func (c *call) describe() error {
	c.echo.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.echo.Blob(http.StatusOK, "application/yaml", OpenAPI)
}
