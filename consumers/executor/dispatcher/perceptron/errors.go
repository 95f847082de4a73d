package perceptron

import "errors"

// ErrOptions is wrapped by what New and NewNeuron return for options that can't work.
// Nothing was made.
var ErrOptions = errors.New("perceptron options")
