package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets all:templates
var files embed.FS

// assets are the embedded files by the name they are served under, which holds their hash: a name never changes its content.
type assets struct {
	byName map[string][]byte
	names  map[string]string
}

func loadAssets() assets {
	a := assets{byName: map[string][]byte{}, names: map[string]string{}}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	for _, entry := range entries {
		data, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		ext := path.Ext(entry.Name())
		served := strings.TrimSuffix(entry.Name(), ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a.byName[served], a.names[entry.Name()] = data, served
	}
	return a
}

// url is where an asset is; an unknown name is a defect that the start finds.
func (a assets) url(name string) string { return "/assets/" + a.names[name] }

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	data, ok := a.byName[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(data)
}
