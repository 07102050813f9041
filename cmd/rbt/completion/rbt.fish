# fish completion for rbt
function __rbt_complete
    set -l words (commandline -opc) (commandline -ct)
    rbt __complete -- $words[2..-1] 2>/dev/null
end
complete -c rbt -a '(__rbt_complete)'
