package identify

import "errors"

var (
	// ErrRule is wrapped by what Compile and CompilePattern say of a rule that
	// means nothing, or more than one thing.
	ErrRule = errors.New("unusable rule")
	// ErrKey is wrapped by what NewTokens says of a key that it can't use.
	ErrKey = errors.New("unusable key of tokens")
	// ErrToken is wrapped by what Tokens.Read says of a token that doesn't count.
	ErrToken = errors.New("token refused")
)
