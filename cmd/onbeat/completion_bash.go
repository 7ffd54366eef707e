package main

import (
	"fmt"
	"strings"
)

// bashCompletion finds the command in the words before the cursor, and offers what that command takes.
func bashCompletion(list []commandModel) string {
	var b strings.Builder
	b.WriteString("# bash completion of onbeat. Load it with: source <(onbeat completion bash)\n")
	b.WriteString(bashLines)
	b.WriteString("_onbeat() {\n")
	b.WriteString("  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=onbeat words='' i\n  COMPREPLY=()\n")
	bashWalk(&b, list)
	bashValues(&b, list)
	b.WriteString("  case $command in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "  %s)\n", quote(c.path))
		bashOffer(&b, c)
		b.WriteString("    ;;\n")
	}
	b.WriteString("  esac\n")
	b.WriteString("  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -F _onbeat onbeat\n")
	return b.String()
}

// bashLines are shell functions that offer lines of text as they are. compgen -W would expand the lines, and run a $() in them.
const bashLines = `_onbeat_schedules() {
  local name
  while IFS= read -r name; do
    [[ $name == "$1"* ]] && COMPREPLY+=("$name")
  done < <(` + listSchedules + `)
}
_onbeat_files() {
  local name
  compopt -o filenames 2>/dev/null
  while IFS= read -r name; do
    COMPREPLY+=("$name")
  done < <(compgen -f -- "$1")
}
`

// bashWalk writes the loop that finds the command.
func bashWalk(b *strings.Builder, list []commandModel) {
	b.WriteString("  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$command ${COMP_WORDS[i]}\" in\n")
	for _, c := range list[1:] {
		fmt.Fprintf(b, "    %s) command=%s ;;\n", quote(c.path), quote(c.path))
	}
	b.WriteString("    esac\n  done\n")
}

// bashValues offers the values of the flag before the cursor.
func bashValues(b *strings.Builder, list []commandModel) {
	b.WriteString("  case $prev in\n")
	arm := func(words []string, do string) {
		if len(words) > 0 {
			fmt.Fprintf(b, "  %s)\n    %s\n    return ;;\n", strings.Join(words, "|"), do)
		}
	}
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "file" }), `_onbeat_files "$cur"`)
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "schedule" }), `_onbeat_schedules "$cur"`)
	done := map[string]bool{}
	for _, c := range list {
		for _, f := range c.flags {
			if len(f.values) > 0 && !done[f.name] {
				done[f.name] = true
				arm(f.words(), fmt.Sprintf(`COMPREPLY=($(compgen -W %s -- "$cur"))`, quote(strings.Join(f.values, " "))))
			}
		}
	}
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "" && len(f.values) == 0 }), ":")
	b.WriteString("  esac\n")
}

// bashOffer sets words to the words that may come next.
func bashOffer(b *strings.Builder, c commandModel) {
	var words []string
	for _, s := range c.subs {
		words = append(words, s.name)
	}
	words = append(words, c.values...)
	for _, f := range c.flags {
		words = append(words, "--"+f.name)
	}
	fmt.Fprintf(b, "    words=%s\n", quote(strings.Join(words, " ")))
	switch c.predict {
	case "schedule":
		b.WriteString("    [[ $cur == -* ]] || { _onbeat_schedules \"$cur\"; return; }\n")
	case "file":
		b.WriteString("    [[ $cur == -* ]] || { _onbeat_files \"$cur\"; return; }\n")
	}
}
