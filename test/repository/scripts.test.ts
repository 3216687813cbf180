/** Holds what the scripts of a store must be, so that none can be taken for another and no argument for its neighbour. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import {
  type CounterKind,
  NODE_COUNTERS,
  TERMINAL_REASONS,
  TerminalState,
} from '../../src/internal/contract/delivery.js'
import { STATE_LETTERS } from '../../src/redis/delivery/record.js'
import { STEPS } from '../../src/redis/delivery/steps.js'
import { withConstants } from '../../src/redis/store/arguments.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { luaModule } from '../../tools/lua.mjs'
import { readFiles, SOURCES } from './imports.js'

const REDIS = join(import.meta.dirname, '../../src/redis')

const scripts = vi.hoisted((): ScriptText[] => [])
vi.mock('../../src/redis/store/script.js', async (load) => {
  const original = await load<typeof import('../../src/redis/store/script.js')>()
  const defineScript = (...given: Parameters<typeof original.defineScript>) => {
    const script = original.defineScript(...given)
    scripts.push(script)
    return script
  }
  return { ...original, defineScript }
})

/** The only file with indexes into `ARGV`, each under a name. */
const GENERATOR = 'redis/store/arguments.ts'

const TERMINAL_LETTERS = TerminalState.options.map((state) => STATE_LETTERS[state])

describe('the scripts of a store', () => {
  beforeAll(async () => {
    // Another file of this worker may have loaded them before.
    vi.resetModules()
    for (const file of readdirSync(REDIS, { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('.ts') && !file.endsWith('.d.ts')) await import(join(REDIS, file))
  })

  it.each(Object.entries(STEPS))('have a function for the delivery step %s with its arguments', (name, {
    file,
    args,
  }) => {
    const lua = readFileSync(join(REDIS, `delivery/${file}.lua`), 'utf8')
    expect(lua).toContain(`local function ${name}(${args.join(', ')})\n`)
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
    for (const source of [...scripts.map(({ source }) => source), ...delivery.map(({ text }) => text)]) {
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

  it('define no function twice, as a script with two copies of an include would', () => {
    const twice = scripts.flatMap(({ name, source }) => {
      const functions = [...source.matchAll(/^local function (\w+)/gm)].map(([, one]) => one)
      return functions.filter((one, i) => functions.indexOf(one) !== i).map((one) => `${name}: ${one}`)
    })
    expect(twice).toEqual([])
  })

  it('leave no Lua file, script or part unused', () => {
    const named = readFiles('src', SOURCES).flatMap(({ path, text }) =>
      [...text.matchAll(/(?:from '|--@include )(\.\S+\.lua)/g)].map(([, file]) =>
        posix.join(posix.dirname(path), file as string),
      ),
    )
    const used = new Set(named)
    const lua = readFiles('src', /\.lua$/)
    expect(lua.map(({ path }) => path).filter((path) => !used.has(path))).toEqual([])
    const code = readFiles('src')
    const unused = lua.flatMap(({ path, text }) =>
      [...text.matchAll(/^--@(script|part) (\w+)/gm)].flatMap(([, kind, name]) => {
        const importers = code.filter((file) => file.text.includes(`/${basename(path)}'`))
        const isUsed =
          kind === 'part'
            ? text.includes(`--@include ${name}\n`)
            : importers.some((file) => file.text.includes(`scripts.${name}`))
        return isUsed ? [] : [`${path}: ${name}`]
      }),
    )
    expect(unused).toEqual([])
  })

  it('have names of their own', () => {
    const names = scripts.map(({ name }) => name)
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })

  it('hide no argument behind a local of the same name', () => {
    const hidden = scripts.flatMap(({ name, source }) => {
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
  it('becomes a module that imports what it includes, without its comments, and with short indents', () => {
    const text =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: text of Lua
      "-- Says why.\n--@include ./keys.lua\n\n  local s = '\\n' -- `kept`\n  -- More.\n--@include ../b.lua\nreturn '${s}'\n"
    expect(luaModule(text)).toBe(
      'import file0 from "./keys.lua"\nimport file1 from "../b.lua"\n' +
        // biome-ignore lint/suspicious/noTemplateCurlyInString: text of a module
        "export default `` + file0 + ` local s = '\\\\n' -- \\`kept\\`\n` + file1 + `return '\\${s}'\n`\n",
    )
  })

  it('has several scripts, which share a part and include a file', () => {
    const text =
      '-- Says why.\n--@part shared\nA\n\n--@script one\n--@include shared\nB\n--@script two\n--@include ./c.lua\nD\n'
    expect(luaModule(text)).toBe(
      'import file0 from "./c.lua"\n' +
        'const section1 = `A\n`\n' +
        'const section2 = `` + section1 + `B\n`\n' +
        'const section3 = `` + file0 + `D\n`\n' +
        'export const scripts = { one: section2, two: section3 }\n',
    )
  })

  it.each([
    ['an unknown directive', '--@inlcude ./keys.lua', /^Unknown directive "--@inlcude/],
    ['an include that is no relative path', '--@include store/keys.lua', /^Unknown directive/],
    ['an include within a block', '  --@include ./keys.lua', /^Unknown directive/],
    ['an unknown part', '--@script one\n--@include two', /^Unknown part "two"/],
    ['the name of another section', '--@part one\n--@script one', /^"one" is defined twice/],
    ['text before the first section', 'return 1\n--@script one', /^Text before the first section/],
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
    expect(() => withConstants(undefined)).toThrow('The Lua file has no script with this name')
    expect(() => withConstants('return 1', { MIN: 1 })).toThrow(
      'Unknown constant "MIN": the Lua script does not use it',
    )
    expect(() => withConstants('return {{A}}', { A: "it's" })).toThrow('A Lua constant cannot contain quotes')
  })
})
