package config

import _ "embed"

//go:embed default.yaml
var defaultYAML string

// DefaultYAML is the whole configuration with its defaults and comments, as
// `penstock config default` prints it. Its sites are an example.
func DefaultYAML() string { return defaultYAML }
