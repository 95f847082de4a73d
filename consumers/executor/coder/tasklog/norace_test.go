//go:build !race

package tasklog_test

const raced = false
