# SPDX-License-Identifier: Apache-2.0
# For run and run_speech, which set all_words: the words that a run of the demo prints or does not.

# A program that ends with threads would wait a second, each time, for more races to report.
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:atexit_sleep_ms=0

# expect CODE "WORDS[|WORDS...]" COMMAND...: checks the exit code, and that of all_words only these occur.
expect() {
    local code=0 wanted=$2 words
    "${@:3}" >log 2>&1 || code=$?
    if ((code != $1)); then
        cat log
        echo "exit code $code instead of $1: ${*:3}"
        exit 1
    fi
    for words in "${all_words[@]}"; do
        local is_wanted=no is_there=no
        [[ "|$wanted|" == *"|$words|"* ]] && is_wanted=yes
        grep -qF "$words" log && is_there=yes
        if [[ $is_wanted != "$is_there" ]]; then
            cat log
            echo "'$words' wanted: $is_wanted, there: $is_there: ${*:3}"
            exit 1
        fi
    done
}

# changed_copy FOLDER: copies it to the folder data, whose files can be changed.
changed_copy() {
    rm -rf data
    cp -r "$1" data
    chmod -R u+w data
}
