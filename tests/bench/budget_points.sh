# Sourced by the scripts that try a model at several budgets.

# field NAME: the first number of that name in the JSON on stdin; nothing where there is none.
field() { grep -o "\"$1\": [0-9]*" | head -1 | grep -o '[0-9]*$' || true; }

# budget_point LEAST MOST I COUNT: the I-th of COUNT budgets from LEAST to MOST, evenly in the logarithm: small ones are the interesting ones.
budget_point() {
  if [ "$3" -eq 0 ]; then
    echo "$1"
  else
    awk -v a="$1" -v b="$2" -v i="$3" -v n="$4" 'BEGIN { if (b < a) b = a; printf "%.0f", a * exp(log(b / a) * i / (n - 1)) }'
  fi
}
