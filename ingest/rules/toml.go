package rules

import (
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"
)

var errTOML = errors.New("not TOML")

// decodeTOML decodes a file that anybody may have written. A message names the line and never the text.
func decodeTOML(b []byte, v *map[string]any) (err error) {
	defer func() {
		if recover() != nil {
			err = errTOML
		}
	}()
	if err := toml.Unmarshal(b, v); err != nil {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return fmt.Errorf("%w: line %d", errTOML, p.Position.Line)
		}
		return errTOML
	}
	return nil
}
