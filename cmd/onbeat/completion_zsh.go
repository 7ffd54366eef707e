package main

import (
	"fmt"
	"strings"
)

// zshCompletion offers the same as bashCompletion, each word with its help.
func zshCompletion(list []commandModel) string {
	var b strings.Builder
	b.WriteString("#compdef onbeat\n# zsh completion of onbeat. Load it with: source <(onbeat completion zsh)\n_onbeat() {\n")
	b.WriteString("  local command=onbeat i\n  local -a words_ flags_\n")
	b.WriteString("  for ((i = 2; i < CURRENT; i++)); do\n    case \"$command ${words[i]}\" in\n")
	for _, c := range list[1:] {
		fmt.Fprintf(&b, "    (%s) command=%s ;;\n", quote(c.path), quote(c.path))
	}
	b.WriteString("    esac\n  done\n")
	zshValues(&b, list)
	b.WriteString("  case $command in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "  (%s)\n", quote(c.path))
		zshOffer(&b, c)
		b.WriteString("    ;;\n")
	}
	b.WriteString("  esac\n}\nif [[ $funcstack[1] == _onbeat ]]; then _onbeat \"$@\"; else compdef _onbeat onbeat; fi\n")
	return b.String()
}

func zshValues(b *strings.Builder, list []commandModel) {
	b.WriteString("  case ${words[CURRENT-1]} in\n")
	arm := func(words []string, do string) {
		if len(words) > 0 {
			fmt.Fprintf(b, "  (%s)\n    %s\n    return ;;\n", strings.Join(words, "|"), do)
		}
	}
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "file" }), "_files")
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "schedule" }), `compadd -- ${(f)"$(`+listSchedules+`)"}`)
	done := map[string]bool{}
	for _, c := range list {
		for _, f := range c.flags {
			if len(f.values) > 0 && !done[f.name] {
				done[f.name] = true
				arm(f.words(), "compadd -- "+strings.Join(f.values, " "))
			}
		}
	}
	arm(flagsBy(list, func(f flagModel) bool { return f.predict == "" && len(f.values) == 0 }), ":")
	b.WriteString("  esac\n")
}

func zshOffer(b *strings.Builder, c commandModel) {
	describe := func(name string, words []wordModel) {
		fmt.Fprintf(b, "    %s=(", name)
		for _, w := range words {
			fmt.Fprintf(b, "\n      %s", quote(strings.ReplaceAll(w.name, ":", `\:`)+":"+w.help))
		}
		b.WriteString(")\n")
	}
	var flags []wordModel
	for _, f := range c.flags {
		flags = append(flags, wordModel{"--" + f.name, f.help})
	}
	describe("words_", c.subs)
	describe("flags_", flags)
	b.WriteString("    if [[ $PREFIX == -* ]]; then\n      _describe flag flags_\n      return\n    fi\n")
	switch {
	case len(c.subs) > 0:
		b.WriteString("    _describe command words_\n")
	case len(c.values) > 0:
		fmt.Fprintf(b, "    compadd -- %s\n", strings.Join(c.values, " "))
	case c.predict == "file":
		b.WriteString("    _files\n")
	case c.predict == "schedule":
		fmt.Fprintf(b, "    compadd -- ${(f)\"$(%s)\"}\n", listSchedules)
	default:
		b.WriteString("    _describe flag flags_\n")
	}
}
