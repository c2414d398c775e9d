import { UsageError } from '../../kernel/error.ts'

/** Each calls back `signalbox complete -- <words>`, so that it knows the same verbs as the program. */
const SCRIPTS: Record<string, string> = {
  bash: `# In ~/.bashrc:  source <(signalbox completion bash)
_signalbox() {
  local IFS=$'\\n' i n=-1 part
  local -a said=() found=()
  # bash takes --flag=value for three words.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    part=\${COMP_WORDS[i]}
    if [[ n -ge 0 && ( $part == = && \${said[n]} == --* || \${said[n]} == --*= && \${COMP_WORDS[i-1]} == = ) ]]; then
      said[n]+=$part
    else
      said[++n]=$part
    fi
  done
  found=($("\${COMP_WORDS[0]}" complete -- "\${said[@]}" 2>/dev/null | cut -f1))
  [[ $part == = ]] && part=
  COMPREPLY=("\${found[@]#"\${said[n]%"$part"}"}")
}
complete -o default -F _signalbox signalbox
`,
  zsh: `#compdef signalbox
# In ~/.zshrc, after compinit:  source <(signalbox completion zsh)
_signalbox() {
  local line
  local -a found
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe signalbox found; else _files; fi
}
compdef _signalbox signalbox
`,
  fish: `# In ~/.config/fish/completions/signalbox.fish:  signalbox completion fish | source
function __signalbox_complete
    set -l before (commandline -opc)
    signalbox complete -- $before[2..] (commandline -ct) 2>/dev/null
end
complete -c signalbox -f -a '(__signalbox_complete)'
`,
}

export function completionScript(shell: string | undefined): string {
  const script = shell && Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script) return script
  throw new UsageError(`Completion for which shell? signalbox completion ${Object.keys(SCRIPTS).join('|')}`)
}
