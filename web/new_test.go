package web

import (
	"testing"

	"github.com/cutonce/cutonce/internal/catalog"
)

func TestEveryPageOpensInEveryTongue(t *testing.T) {
	t.Parallel()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	books, err := openBooks(texts, loadAssets())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(books), 2*len(catalog.Languages); got != want {
		t.Errorf("books: got %d, want %d", got, want)
	}
}
