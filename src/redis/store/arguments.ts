/**
 * Named arguments and constants of scripts: no other file knows the position of an argument.
 *
 * Scripts are in `.lua` files next to the TypeScript that defines them: `import { scripts } from './history.lua'`, then
 * `defineScript('history.append', { args, constants, answer }, scripts.append)`. In the Lua file, the script is what
 * follows the line `--@script append`. A line `--@include ./other.lua` inserts another file (relative path), `--@include
 * name` the lines after `--@part name` of the same file. `stream` is the argument with that name, and `{{LOOSE_MS}}` is
 * the constant with that name: a number, a quoted string, or a list of strings without braces. A number that only Lua
 * needs is a local of the Lua file. The build and Vitest turn these files into modules.
 */

type Argument = string | number

/** The arguments of one call: a value for each of `Names`, and the list that comes last. */
export type Arguments<Names extends string, Rest extends string = never> = Readonly<Record<Names, Argument>> &
  Readonly<Record<Rest, readonly Argument[]>>

/** Returns the first lines of a script: a local for each name, and a table `rest` with all arguments after them. */
export function localsOf(names: readonly string[], rest: string | undefined): string {
  const singles = names.length === 0 ? '' : `local ${names.join(', ')} = unpack(ARGV, 1, ${names.length})\n`
  if (rest === undefined) return singles
  return `${singles}local ${rest} = {}\nfor i = ${names.length + 1}, #ARGV do ${rest}[i - ${names.length}] = ARGV[i] end\n`
}

/** Returns `given` as the `ARGV` of the script. */
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
 * Replaces each `{{NAME}}` in `lua` with the constant of that name.
 *
 * @throws TypeError if a constant is missing or unused, or if the Lua file has no such script.
 */
export function withConstants(lua: string | undefined, constants: Constants = {}): string {
  if (lua === undefined) throw new TypeError('The Lua file has no script with this name')
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

/** Lua that calls `name` with all that a script is given, as the store calls a function of a library. */
export const callWithAll = (name: string): string => `return ${name}(KEYS, ARGV)`
