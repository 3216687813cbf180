/** Holds what the scripts of a store must be, so that none can be taken for another and no argument for its neighbour. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type CounterKind, NODE_COUNTERS, TERMINAL_REASONS, TerminalState } from '../../src/contract/delivery.js'
import type { ScriptText } from '../../src/redis/store/script.js'
import { readFiles } from './imports.js'

const REDIS = join(import.meta.dirname, '../../src/redis')
const isScript = (value: unknown): value is ScriptText =>
  typeof value === 'object' && value !== null && 'digest' in value && 'source' in value

/** What stands at a place in `ARGV` stands there in one file alone, which gives it a name. */
const GENERATOR = 'redis/store/arguments.ts'

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

  it('tell of delivery in the words of the contract', () => {
    const wordsIn = (text: string) => [...text.matchAll(/'([a-z_]+)'/g)].map(([, word]) => word as string)
    const foreign = new Set<string>()
    let found = 0
    const hold = (words: string[], known: readonly string[]) => {
      found += words.length
      for (const word of words) if (!known.includes(word)) foreign.add(word)
    }
    for (const { source } of scripts.map(({ script }) => script)) {
      for (const [call] of source.matchAll(/\bcount\([^)\n]*'[^)\n]*\)/g))
        for (const [, kind, name] of call.matchAll(/'([a-z]+) (\w*)'/g)) {
          const known: readonly string[] = NODE_COUNTERS[kind as CounterKind] ?? []
          // With nothing behind it, or a part, the rest is put behind it.
          hold([name as string], name ? [...known, 'attempt_'] : [''])
        }
      for (const [, state, reason] of source.matchAll(/\bfinish\(c, '(\w+)', '(\w+)'/g)) {
        hold([state as string], TerminalState.options)
        hold([reason as string], TERMINAL_REASONS)
      }
      for (const [, reason] of source.matchAll(/\brefusal = '(\w+)'\n/g)) hold([reason as string], TERMINAL_REASONS)
      for (const [, reason] of source.matchAll(/\breason = ([^\n]*)\n/g))
        hold(wordsIn(reason as string), NODE_COUNTERS.recovery)
    }
    expect([[...foreign], found > 50]).toEqual([[], true])
  })

  it('take their arguments by name', () => {
    const positional = readFiles('src').filter(({ path, text }) => path !== GENERATOR && /\bARGV\b/.test(text))
    expect(positional.map(({ path }) => path)).toEqual([])
  })

  it('have names of their own, and so have the constants that hold them', () => {
    const twice = (names: string[]) => names.filter((name, i) => names.indexOf(name) !== i)
    expect(twice(scripts.map(({ script }) => script.name))).toEqual([])
    expect(twice(scripts.map(({ constant }) => constant))).toEqual([])
  })

  it('give a call of the dispatcher no argument of a name that means something to it already', () => {
    const hiding = scripts.flatMap(({ script: { name, source } }) => {
      const [before = '', args] = source.split(/\nlocal function run\((.*)\)\n/)
      const known = [...before.matchAll(/^local (?:function )?([\w, ]+)/gm)].flatMap(([, names = '']) =>
        names.split(/[, ]+/),
      )
      return (args?.split(', ') ?? [])
        .filter((arg) => arg !== '' && known.includes(arg))
        .map((arg) => `${name}: ${arg}`)
    })
    expect(hiding).toEqual([])
    expect(scripts.filter(({ script }) => script.source.includes('\nlocal function run(')).length).toBeGreaterThan(10)
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
