#compdef rbt
# zsh completion for rbt
_rbt() {
    local -a candidates
    candidates=("${(@f)$(rbt __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$candidates" ]]; then
        compadd -a candidates
    else
        _files
    fi
}
compdef _rbt rbt
