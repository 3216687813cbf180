/**
 * The arguments and constants of a script by their names: no other file knows at which place an argument travels.
 *
 * Scripts are `.lua` files beside the TypeScript that defines them: `import appendLua from './append.lua'`, then
 * `defineScript('history.append', { args, constants, answer }, appendLua)`. In the Lua, `--@include ./other.lua` on a line
 * of its own inserts another file (a path relative to this one), `stream` is the argument of that name, and `{{LOOSE_MS}}`
 * the constant of that name: a number, a text in quotes, or a list of texts without braces. A number that only Lua needs
 * is a local of the Lua file. The build and Vitest turn these files into modules (docs/contributing.md).
 */

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

/** Constants that a script shares with TypeScript. */
export type Constants = Readonly<Record<string, string | number | readonly string[]>>

function literalOf(value: string | number): string {
  if (typeof value === 'number') return String(value)
  if (/['\\\p{Cc}]/u.test(value))
    throw new TypeError(`A Lua constant cannot contain quotes or control characters: ${value}`)
  return `'${value}'`
}

/**
 * Replaces each `{{NAME}}` in `lua` by the constant of that name.
 *
 * @throws TypeError for a name without a constant, and for a constant that is not used
 */
export function withConstants(lua: string, constants: Constants = {}): string {
  const unused = new Set(Object.keys(constants))
  const filled = lua.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = constants[name]
    if (value === undefined) throw new TypeError(`Missing constant "${name}" of a Lua script`)
    unused.delete(name)
    return [value].flat().map(literalOf).join(', ')
  })
  if (unused.size > 0)
    throw new TypeError(`Unknown constant "${[...unused].join(', ')}": the Lua script does not use it`)
  return filled
}
