/** Holds what the scripts of a store must be, so that none can be taken for another and no argument for its neighbour. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type CounterKind, NODE_COUNTERS, TERMINAL_REASONS, TerminalState } from '../../src/contract/delivery.js'
import { STATE_LETTERS } from '../../src/redis/delivery/record.js'
import { withConstants } from '../../src/redis/store/arguments.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { luaModule } from '../../tools/lua.mjs'
import { readFiles, readSources, SOURCES } from './imports.js'

const REDIS = join(import.meta.dirname, '../../src/redis')
const isScript = (value: unknown): value is ScriptText =>
  typeof value === 'object' && value !== null && 'digest' in value && 'source' in value

/** The only file with indexes into `ARGV`, each under a name. */
const GENERATOR = 'redis/store/arguments.ts'

const TERMINAL_LETTERS = TerminalState.options.map((state) => STATE_LETTERS[state])

describe('the scripts of a store', () => {
  const scripts: { constant: string; script: ScriptText }[] = []
  beforeAll(async () => {
    for (const file of readdirSync(REDIS, { recursive: true, encoding: 'utf8' })) {
      if (!/\/(script[^/]*|sweep)\.ts$/.test(file)) continue
      const exported: Record<string, unknown> = await import(join(REDIS, file))
      for (const [constant, script] of Object.entries(exported))
        if (isScript(script)) scripts.push({ constant, script })
    }
  })

  it('are found', () => {
    expect(scripts.length).toBeGreaterThan(30)
  })

  it('use the terms of the contract for delivery', () => {
    const foreign = new Set<string>()
    let found = 0
    const hold = (words: string[], known: readonly string[]) => {
      found += words.length
      for (const word of words) if (!known.includes(word)) foreign.add(word)
    }
    const delivery = readFiles('src', SOURCES).filter(({ path }) => /^redis\/delivery\/.*\.lua$/.test(path))
    for (const source of [...scripts.map(({ script }) => script.source), ...delivery.map(({ text }) => text)]) {
      for (const [call] of source.matchAll(/\bcount\([^)\n]*'[^)\n]*\)/g))
        for (const [, kind, name] of call.matchAll(/'([a-z]+) (\w*)'/g)) {
          const known: readonly string[] = NODE_COUNTERS[kind as CounterKind] ?? []
          // With nothing behind it, or a part, the rest is put behind it.
          hold([name as string], name ? [...known, 'attempt_'] : [''])
        }
      for (const [, letter, reason] of source.matchAll(/\bfinish\(c, '(\w)', '(\w+)'/g)) {
        hold([letter as string], TERMINAL_LETTERS)
        hold([reason as string], TERMINAL_REASONS)
      }
      for (const [, refusal] of source.matchAll(
        /\b(?:refused|current|tracked_max|capacity)\)?[^\n]* then return '(\w{3,})' end/g,
      ))
        hold([refusal as string], TERMINAL_REASONS)
      for (const [, reason] of source.matchAll(/\bnote\(c, '[JTR]', '\\t(\w+)'/g))
        hold([reason as string], NODE_COUNTERS.recovery)
    }
    expect([[...foreign], found > 30]).toEqual([[], true])
  })

  it('take their arguments by name', () => {
    const positional = readFiles('src', SOURCES).filter(({ path, text }) => path !== GENERATOR && /\bARGV\b/.test(text))
    expect(positional.map(({ path }) => path)).toEqual([])
  })

  it('are Lua files, not strings in TypeScript', () => {
    const inStrings = readFiles('src').filter(({ text }) => /\bredis\.p?call\(|^local |^return \{ /m.test(text))
    expect(inStrings.map(({ path }) => path)).toEqual([])
  })

  it('include no file twice, and leave no file unused', () => {
    const files = readSources()
    const included = new Map(files.map(({ path, imports }) => [path, imports.map(({ target }) => target)]))
    const partsOf = (path: string): string[] => [path, ...(included.get(path) ?? []).flatMap(partsOf)]
    const lua = files.map(({ path }) => path).filter((path) => path.endsWith('.lua'))
    expect(lua.filter((path) => partsOf(path).some((part, i, all) => all.indexOf(part) !== i))).toEqual([])
    const used = new Set([...included.values()].flat())
    expect(lua.filter((path) => !used.has(path))).toEqual([])
  })

  it('have names of their own, and so have the constants that hold them', () => {
    const twice = (names: string[]) => names.filter((name, i) => names.indexOf(name) !== i)
    expect(twice(scripts.map(({ script }) => script.name))).toEqual([])
    expect(twice(scripts.map(({ constant }) => constant))).toEqual([])
  })

  it('hide no argument behind a local of the same name', () => {
    const hidden = scripts.flatMap(({ script: { name, source } }) => {
      const [, list = ''] = /^local ([^=]*) = unpack\(ARGV/m.exec(source) ?? []
      const body = source.slice(source.indexOf('unpack(ARGV'))
      const locals = [...body.matchAll(/^local (?:function )?([\w, ]+)/gm)].flatMap(([, names = '']) =>
        names.split(/[, ]+/),
      )
      return list
        .split(', ')
        .filter((arg) => locals.includes(arg))
        .map((arg) => `${name}: ${arg}`)
    })
    expect(hidden).toEqual([])
  })
})

describe('a Lua file', () => {
  it('becomes a module that imports what it includes, without its comments', () => {
    const text =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: text of Lua
      "-- Says why.\n--@include ./keys.lua\n\nlocal s = '\\n' -- `kept`\n  -- More.\n--@include ../b.lua\nreturn '${s}'\n"
    expect(luaModule(text)).toBe(
      'import part0 from "./keys.lua"\nimport part1 from "../b.lua"\n' +
        // biome-ignore lint/suspicious/noTemplateCurlyInString: text of a module
        "export default `` + part0 + `local s = '\\\\n' -- \\`kept\\`\n` + part1 + `return '\\${s}'\n`\n",
    )
  })

  it.each([
    ['an unknown directive', '--@inlcude ./keys.lua', /^Unknown directive "--@inlcude/],
    ['an include that is no relative path', '--@include store/keys.lua', /^Unknown directive/],
    ['an include within a block', '  --@include ./keys.lua', /^Unknown directive/],
    ['a long string', 'return [[', /^Long strings are not supported: return \[\[/],
    ['a long comment', '--[==[', /^Long strings are not supported/],
  ])('is refused with %s', (_what, text, message) => {
    expect(() => luaModule(text)).toThrow(message)
  })
})

describe('constants of a script', () => {
  it('are numbers, quoted texts and lists of them', () => {
    const lua = 'return { {{MAX}}, {{STATE}}, {{FIELDS}}, { {} } }'
    expect(withConstants(lua, { MAX: -5, STATE: 'open', FIELDS: ['a', 'b'] })).toBe(
      "return { -5, 'open', 'a', 'b', { {} } }",
    )
  })

  it('are refused when one is missing, unknown or cannot be quoted', () => {
    expect(() => withConstants('return {{MAX}}')).toThrow('Missing constant "MAX" of a Lua script')
    expect(() => withConstants('return 1', { MIN: 1 })).toThrow(
      'Unknown constant "MIN": the Lua script does not use it',
    )
    expect(() => withConstants('return {{A}}', { A: "it's" })).toThrow('A Lua constant cannot contain quotes')
  })
})
