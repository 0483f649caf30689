// Renders templates with Go's own text/template: cases on standard input, answers on standard output.
package main

import (
	"encoding/json"
	"log"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

type answer struct {
	Name   string  `json:"name"`
	Output *string `json:"output,omitempty"`
	Phase  string  `json:"phase,omitempty"`
	Line   int     `json:"line,omitempty"`
	Error  string  `json:"error,omitempty"`
}

func main() {
	var input struct {
		Variables map[string]string `json:"variables"`
		Cases     []struct {
			Name     string `json:"name"`
			Template string `json:"template"`
			Missing  string `json:"missing"`
		} `json:"cases"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatal(err)
	}
	line := regexp.MustCompile(`^template: job:(\d+):`)
	answers := []answer{}
	for _, one := range input.Cases {
		mode := "default"
		if one.Missing == "refused" {
			mode = "error"
		}
		var out strings.Builder
		phase := "parse"
		parsed, err := template.New("job").Option("missingkey=" + mode).Parse(one.Template)
		if err == nil {
			phase = "execute"
			err = parsed.Execute(&out, input.Variables)
		}
		text := out.String()
		a := answer{Name: one.Name, Output: &text}
		if err != nil {
			a = answer{Name: one.Name, Phase: phase, Error: err.Error()}
			if found := line.FindStringSubmatch(err.Error()); found != nil {
				a.Line, _ = strconv.Atoi(found[1])
			}
		}
		answers = append(answers, a)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answers); err != nil {
		log.Fatal(err)
	}
}
