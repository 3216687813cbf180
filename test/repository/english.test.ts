/** Keeps the texts of the repository in plain English: each forbidden pattern comes with its replacement. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './imports.js'

const FORBIDDEN: readonly [pattern: RegExp, replacement: string][] = [
  [/\b(no|some|any|every)body\b/i, 'name the role: caller, client, user, viewer'],
  [/\bwho(ever|mever|m)\b/i, 'callers that …, the user that …'],
  [/\b(is|are|was|were|be|been|being) told\b/i, 'receives, is notified, onError is called with'],
  [/(?<!there )\b(is|are|was|were) none\b/i, 'is invalid, is not a …, there is no …'],
  [/\b(hears?|heard) of\b/i, 'receives, is notified of'],
  [/\b(tells?|told) of\b/i, 'reports, notifies'],
  [/\bof ours\b/i, 'of the library'],
  [/\bfor ever\b/i, 'forever, indefinitely'],
  [/\bbeside\b/i, 'next to, besides, in addition to'],
  [/\bin (the )?place of\b/i, 'instead of, replaces'],
  [/\brun out\b/i, 'expired'],
  [/\bpatience\b/i, 'timeout'],
  [/\bmend(s|ed|ing)?\b/i, 'fix, repair'],
  [/\b(journey|door|floors)\b/i, 'request path, authentication, layers'],
  [/\banew\b/i, 'again'],
  [/\bgo(es)? on\b/i, 'continues'],
  [/\bwhat (there is|is there|is none|is no|it is|they are|stands)\b/i, 'name the thing'],
  [/\bstands (there|in the|before|behind|under|at)\b/i, 'is'],
  [/\bcame to nothing\b|\bcomes to (nothing|an end)\b/i, 'failed, ended'],
  [/\bhand(s|ed)?[- ]overs?\b/i, 'delivery, delivers'],
]

/** Declared names that say nothing to a reader of the field; a name says what the thing is. */
const VAGUE_NAMES =
  /^(?:export )?(?:async )?(?:interface|type|class|const|function) (Ask|Asked|Told|Found|Seen|Sight|Look|Looking|Spent|Trouble|Word|Echo|Ending|ask|narrows|examinable|said|needed|having|orNull|boundsIn|shareOf|omitting|annotated|along|about|behind|at|put|carry|unusable|readmit|ghostOf|ousted|unsure)\b/

/** Names of which each means one thing in the library. */
const UNIQUE_NAMES = ['pageOf', 'textOf', 'answerOf', 'Reading', 'FAMILIES', 'MatchedRequest']

/** Files that need a forbidden word. At most five. */
const EXCEPTIONS: readonly string[] = ['test/repository/english.test.ts']

const TEXTS = ['src', 'test', 'docs', 'examples', 'bench', 'tools', 'README.md', 'SECURITY.md', 'CHANGELOG.md']

const isBuilt = (name: string) => ['node_modules', 'dist', 'coverage', 'stress-seeds'].includes(name)

/** The texts of a file or folder, without what is built or installed. */
function filesIn(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path]
  return readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter(({ name }) => !isBuilt(name))
    .flatMap((entry) => (entry.isDirectory() ? filesIn(`${path}/${entry.name}`) : [`${path}/${entry.name}`]))
    .filter((file) => /\.(tsx?|mjs|md|lua|pml|html|css)$/.test(file) && !EXCEPTIONS.includes(file))
}

/** The forbidden patterns in a line, each with its replacement. */
const faultsIn = (line: string): string[] =>
  FORBIDDEN.flatMap(([pattern, replacement]) => {
    const [found] = pattern.exec(line) ?? []
    return found === undefined ? [] : [`"${found}": ${replacement}`]
  })

const violations = (path: string): string[] =>
  readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .flatMap((line, index) => faultsIn(line).map((fault) => `${path}:${index + 1}: ${fault}`))

/** The subject of the last commit; none if this is not a clone. */
function lastSubject(): string[] {
  try {
    const log = execFileSync('git', ['log', '-1', '--no-merges', '--format=%s'], { cwd: ROOT, stdio: 'pipe' })
    return String(log).split('\n').filter(Boolean)
  } catch {
    return []
  }
}

describe('plain English', () => {
  it('has at most five exceptions', () => {
    expect(EXCEPTIONS.length).toBeLessThanOrEqual(5)
  })

  it.each(TEXTS)('is used everywhere in %s', (folder) => {
    const files = filesIn(folder)
    expect(files.length).toBeGreaterThan(0)
    expect(files.flatMap(violations)).toEqual([])
  })

  it('names no declaration of src by a vague word', () => {
    const vague = filesIn('src').flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .flatMap((line) => (VAGUE_NAMES.test(line) ? [`${file}: ${line}`] : [])),
    )
    expect(vague).toEqual([])
  })

  it.each(UNIQUE_NAMES)('declares at most one %s', (name) => {
    const declaration = new RegExp(`^(?:export )?(?:async )?(?:interface|type|class|const|function) ${name}\\b`, 'm')
    const files = filesIn('src').filter((file) => declaration.test(readFileSync(join(ROOT, file), 'utf8')))
    expect(files.length).toBeLessThanOrEqual(1)
  })

  it('is used in the subject of the last commit', () => {
    expect(lastSubject().flatMap(faultsIn)).toEqual([])
  })
})
