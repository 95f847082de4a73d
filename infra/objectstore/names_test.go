package objectstore

import (
	"errors"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "a/b.c": true, ".hidden": true, "ü": true, "...": true, "\xff": true, "a b": true,
		strings.Repeat("n", 255): true, strings.Repeat("n/", 511) + "nn": true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/.": false,
		`a\b`: false, "a\x00": false, ".penstock": false, "a/.penstock-mark": false,
		strings.Repeat("n", 256): false, strings.Repeat("n/", 512) + "n": false,
	} {
		if err := CheckName(name); (err == nil) != good || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%.40q: %v", name, err)
		}
	}
	for owner, good := range map[string]bool{"a": true, "..": true, strings.Repeat("/", MaxOwner): true, "": false, strings.Repeat("a", MaxOwner+1): false} {
		if err := CheckOwner(owner); (err == nil) != good || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%.40q: %v", owner, err)
		}
	}
}
