package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash or zsh." enum:"bash,zsh"`
}

// Help shows how to use it.
func (completionCmd) Help() string {
	return `Examples:
  source <(penstock completion bash)
  penstock completion zsh > "${fpath[1]}/_penstock"`
}

// Run prints a completion script of verbs, flags and file names.
func (c *completionCmd) Run(con *console, app *kong.Kong) error {
	var b strings.Builder
	if c.Shell == "zsh" {
		b.WriteString("#compdef penstock\nautoload -U +X bashcompinit && bashcompinit\n")
	}
	b.WriteString(`_penstock() {
  local cur="${COMP_WORDS[COMP_CWORD]}" path="" w words=""
  for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$w" in -*) ;; *) case " $_penstock_paths " in *" ${path:+$path/}$w "*) path="${path:+$path/}$w" ;; esac ;; esac
  done
  case "$path" in
`)
	paths := words(&b, app.Model.Node, "")
	fmt.Fprintf(&b, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur"))
}
_penstock_paths=%q
complete -o filenames -F _penstock penstock
`, strings.Join(paths, " "))
	_, err := fmt.Fprint(con.out, b.String())
	return err
}

// words writes a case of the script for a node and all below it, and returns
// the paths of those below.
func words(b *strings.Builder, n *kong.Node, path string) []string {
	var list, paths []string
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			list = append(list, "--"+f.Name)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	var below []*kong.Node
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			list = append([]string{c.Name}, list...)
			below = append(below, c)
		}
	}
	for _, p := range n.Positional {
		list = append(list, p.EnumSlice()...)
	}
	fmt.Fprintf(b, "    %q) words=%q ;;\n", path, strings.TrimSpace(strings.Join(list, " ")))
	for _, c := range below {
		at := strings.TrimPrefix(path+"/"+c.Name, "/")
		paths = append(append(paths, at), words(b, c, at)...)
	}
	return paths
}
