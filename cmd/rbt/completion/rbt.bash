# bash completion for rbt
_rbt() {
    local words
    words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    mapfile -t COMPREPLY < <(rbt __complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _rbt rbt
