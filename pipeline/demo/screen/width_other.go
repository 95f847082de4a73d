//go:build !unix

package screen

import "os"

// WidthOf returns a function that supposes 100 columns.
func WidthOf(*os.File) func() int { return func() int { return 100 } }
