package recording

import "io"

// OpenPlain opens a regular file for reading what is in it, plain, gz or zst,
// without a byte order mark; it is for formats that are not recordings of requests.
// Errors are a Reader's: ErrOption, ErrDamaged, the file system's.
func OpenPlain(name string) (io.ReadCloser, error) {
	in, err := openInput(name)
	if err != nil {
		return nil, err
	}
	in.skipBOM()
	return plainFile{in}, nil
}

// plainFile is an input as others see it.
type plainFile struct{ in *input }

func (p plainFile) Read(b []byte) (int, error) { return p.in.in.Read(b) }

func (p plainFile) Close() error { return p.in.close() }
