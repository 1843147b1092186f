# bash completion of streampool. Written by `streampool help --bash-completion`; a test compares
# the two.

# KIND WORD: the words of a kind that begin with WORD.
_streampool_words()
{
    case $1 in
    files) compgen -f -- "$2" ;;
    folders) compgen -d -- "$2" ;;
    devices) compgen -W 'cpu cuda:0 null' -- "$2" ;;
    commands) compgen -W 'bench help info inspect ops run verify' -- "$2" ;;
    esac
}

_streampool()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local kind= operands=nothing options=
    case "${COMP_WORDS[1]} $previous" in
    'bench --threads') kind=nothing ;;
    'bench --window') kind=nothing ;;
    'bench --warm-up') kind=nothing ;;
    'bench --rate') kind=nothing ;;
    'bench --in-flight') kind=nothing ;;
    'bench --batching') kind=nothing ;;
    'bench --against') kind=files ;;
    'bench --against-threads') kind=nothing ;;
    'bench --svg') kind=files ;;
    'bench --input') kind=files ;;
    'bench --shape') kind=nothing ;;
    'bench --dim') kind=nothing ;;
    'bench --seed') kind=nothing ;;
    'bench --device') kind=devices ;;
    'bench --max-memory') kind=nothing ;;
    'bench --max-trips') kind=nothing ;;
    'bench --precision') kind=nothing ;;
    'inspect --input') kind=files ;;
    'inspect --shape') kind=nothing ;;
    'inspect --dim') kind=nothing ;;
    'inspect --seed') kind=nothing ;;
    'inspect --device') kind=devices ;;
    'inspect --max-memory') kind=nothing ;;
    'inspect --max-trips') kind=nothing ;;
    'inspect --precision') kind=nothing ;;
    'run --input') kind=files ;;
    'run --shape') kind=nothing ;;
    'run --dim') kind=nothing ;;
    'run --seed') kind=nothing ;;
    'run --output') kind=files ;;
    'run --output-dir') kind=folders ;;
    'run --threads') kind=nothing ;;
    'run --repeat') kind=nothing ;;
    'run --device') kind=devices ;;
    'run --max-memory') kind=nothing ;;
    'run --max-trips') kind=nothing ;;
    'run --precision') kind=nothing ;;
    'verify --tolerance') kind=nothing ;;
    'verify --device') kind=devices ;;
    'verify --max-memory') kind=nothing ;;
    'verify --max-trips') kind=nothing ;;
    'verify --precision') kind=nothing ;;
    esac
    case "${COMP_WORDS[1]}" in
    bench)
        operands=files
        options='--threads --window --warm-up --rate --in-flight --batching --statistics --per-op --against --against-threads --svg --json --input --shape --dim --seed --device --max-memory --max-trips --precision --help --version'
        ;;
    help)
        operands=commands
        options='--man --bash-completion --help --version'
        ;;
    info)
        operands=nothing
        options='--json --help --version'
        ;;
    inspect)
        operands=files
        options='--input --shape --dim --seed --device --max-memory --max-trips --precision --help --version'
        ;;
    ops)
        operands=nothing
        options='--help --version'
        ;;
    run)
        operands=files
        options='--input --shape --dim --seed --output --output-dir --threads --repeat --device --max-memory --max-trips --precision --help --version'
        ;;
    verify)
        operands=folders
        options='--tolerance --device --max-memory --max-trips --precision --help --version'
        ;;
    esac
    # NAME=FILE: bash takes the = for a word of its own.
    if [[ $previous == = || $word == = ]]; then
        kind=files
        [[ $word != = ]] || word=
    elif ((COMP_CWORD == 1)); then
        kind=commands options='--help --version'
    fi
    if [[ $word == -* && (-z $kind || $kind == commands) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    else
        mapfile -t COMPREPLY < <(_streampool_words "${kind:-$operands}" "$word")
    fi
}
complete -o filenames -F _streampool streampool
