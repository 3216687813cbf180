/** The arguments of a script by their names: no other file knows at which place each of them travels. */

type Argument = string | number

/** What a caller gives: a value for each of `Names`, and the list that comes last. */
export type Arguments<Names extends string, Rest extends string = never> = Readonly<Record<Names, Argument>> &
  Readonly<Record<Rest, readonly Argument[]>>

/** What a script begins with: each name a local, and `rest` a table of all that comes behind them. */
export function localsOf(names: readonly string[], rest: string | undefined): string {
  const singles = names.length === 0 ? '' : `local ${names.join(', ')} = unpack(ARGV, 1, ${names.length})\n`
  if (rest === undefined) return singles
  return `${singles}local ${rest} = {}\nfor i = ${names.length + 1}, #ARGV do ${rest}[i - ${names.length}] = ARGV[i] end\n`
}

/** `given` as the script finds it. */
export function argvOf<Names extends string, Rest extends string>(
  names: readonly Names[],
  rest: Rest | undefined,
  given: Arguments<Names, Rest>,
): string[] {
  const list: readonly Argument[] = rest === undefined ? [] : given[rest]
  return [...names.map((name) => given[name]), ...list].map(String)
}
