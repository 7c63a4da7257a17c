// Command celgo evaluates CEL expressions with cel-go.
//
// Each line on standard input is {"text": ..., "row": {...}}. Its line on standard output is [type, value],
// or ["syntax", message] for a text that is no expression, or ["error", message]. Types are not checked
// before the evaluation, since the fields of Kubernetes objects have none.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

type request struct {
	Text string         `json:"text"`
	Row  map[string]any `json:"row"`
}

func main() {
	env, err := cel.NewEnv()
	if err != nil {
		fail(err)
	}
	lines := bufio.NewReader(os.Stdin)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		encoded, err := json.Marshal(answer(env, line))
		if err != nil {
			fail(err)
		}
		output.Write(append(encoded, '\n'))
		output.Flush()
	}
}

func answer(env *cel.Env, line []byte) []any {
	decoder := json.NewDecoder(strings.NewReader(string(line)))
	decoder.UseNumber()
	var asked request
	if err := decoder.Decode(&asked); err != nil {
		fail(err)
	}
	parsed, issues := env.Parse(asked.Text)
	if issues.Err() != nil {
		return []any{"syntax", issues.Err().Error()}
	}
	program, err := env.Program(parsed)
	if err != nil {
		return []any{"syntax", err.Error()}
	}
	row := map[string]any{}
	for name, value := range asked.Row {
		row[name] = bind(value)
	}
	value, _, err := program.Eval(row)
	if err != nil {
		return []any{"error", err.Error()}
	}
	return encode(value)
}

// bind returns decoded JSON with its numbers as CEL has them.
func bind(value any) any {
	switch it := value.(type) {
	case json.Number:
		if !strings.ContainsAny(it.String(), ".eE") {
			whole, err := it.Int64()
			if err != nil {
				fail(err)
			}
			return whole
		}
		fraction, err := it.Float64()
		if err != nil {
			fail(err)
		}
		return fraction
	case []any:
		items := make([]any, len(it))
		for number, item := range it {
			items[number] = bind(item)
		}
		return items
	case map[string]any:
		fields := make(map[string]any, len(it))
		for name, field := range it {
			fields[name] = bind(field)
		}
		return fields
	}
	return value
}

func encode(value ref.Val) []any {
	switch it := value.(type) {
	case types.Null:
		return []any{"null_type", ""}
	case types.Bool:
		return []any{"bool", bool(it)}
	case types.Int:
		return []any{"int", strconv.FormatInt(int64(it), 10)}
	case types.Uint:
		return []any{"uint", strconv.FormatUint(uint64(it), 10)}
	case types.Double:
		return []any{"double", strconv.FormatFloat(float64(it), 'g', -1, 64)}
	case types.String:
		return []any{"string", string(it)}
	case types.Bytes:
		return []any{"bytes", fmt.Sprintf("%x", []byte(it))}
	case types.Timestamp:
		return []any{"timestamp", strconv.FormatInt(it.Unix(), 10) + " " + strconv.Itoa(it.Time.Nanosecond())}
	case types.Duration:
		return []any{"duration", strconv.FormatInt(int64(it.Duration/time.Nanosecond), 10)}
	case *types.Type:
		return []any{"type", it.TypeName()}
	case traits.Mapper:
		items := []any{}
		for keys := it.Iterator(); keys.HasNext() == types.True; {
			key := keys.Next()
			items = append(items, []any{encode(key), encode(it.Get(key))})
		}
		return []any{"map", items}
	case traits.Lister:
		items := []any{}
		for elements := it.Iterator(); elements.HasNext() == types.True; {
			items = append(items, encode(elements.Next()))
		}
		return []any{"list", items}
	}
	return []any{"error", fmt.Sprintf("a value of type %s", value.Type().TypeName())}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
