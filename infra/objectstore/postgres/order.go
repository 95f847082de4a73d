package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// order sorts tables so that each comes after those that it refers to, and
// otherwise by name, so that sites with the same tables have the same order.
// references maps a table's name to those it refers to; itself and tables that
// are not in the list don't count.
func order(names []string, references map[string][]string) ([]string, error) {
	left := slices.Sorted(slices.Values(names))
	var sorted []string
	done := map[string]bool{}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(references[name], func(to string) bool {
				return to != name && !done[to] && slices.Contains(left, to)
			})
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: foreign keys go round: %s", ErrTables, strings.Join(circle(left, references), " → "))
		}
		done[left[i]] = true
		sorted = append(sorted, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return sorted, nil
}

// circle finds one among tables each of which refers to another of them.
func circle(names []string, references map[string][]string) []string {
	path := []string{names[0]}
	for {
		last := path[len(path)-1]
		next := slices.MinFunc(references[last], func(a, b string) int {
			in := func(s string) int {
				if s != last && slices.Contains(names, s) {
					return 0
				}
				return 1
			}
			return cmp.Or(cmp.Compare(in(a), in(b)), cmp.Compare(a, b))
		})
		path = append(path, next)
		if i := slices.Index(path, next); i < len(path)-1 {
			return path[i:]
		}
	}
}
