/** What this repository installs, as its lock file names it. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Locked {
  version?: string
  engines?: { node?: string }
  os?: string[]
  cpu?: string[]
  optionalDependencies?: Record<string, string>
}

const require = createRequire(import.meta.url)
const { satisfies }: { satisfies(version: string, range: string): boolean } = require('semver')
const ROOT = join(import.meta.dirname, '../..')
/** The oldest Node that `engines` of package.json promises, and the newest of its major. */
const NODES = ['20.19.0', '20.20.2']

const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, Locked>
}
const installed = Object.entries(packages).filter(([, { os, cpu }]) => os === undefined && cpu === undefined)

/** Where Node looks for `name` from the package at `path`, nearest first. */
function* placesOf(name: string, path: string): Generator<string> {
  for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/'))))
    yield `${at}/node_modules/${name}`
  yield `node_modules/${name}`
}

describe('the lock file', () => {
  it('has no package that refuses a supported Node 20', () => {
    const refusing = installed.filter(([, { engines }]) => NODES.some((node) => !satisfies(node, engines?.node ?? '*')))
    expect(installed.length).toBeGreaterThan(100)
    expect(refusing.map(([path, { version, engines }]) => `${path} ${version}: ${engines?.node}`)).toEqual([])
  })

  it('has the packages of every platform, without which npm ci refuses it elsewhere', () => {
    const missing = installed.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => ![...placesOf(name, path)].some((place) => place in packages))
        .map((name) => `${path}: ${name}`),
    )
    expect(missing).toEqual([])
  })
})
