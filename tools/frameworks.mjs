/**
 * Runs the routes of docs/mounting.md in frameworks themselves. Without options those that are small: a project with the built
 * package and what `npm ci --ignore-scripts --prefix tools/frameworks` installs. `--built [--only next …] [--keep <folder>]` installs,
 * builds and runs a project of each framework, which takes minutes and the registry.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkBuilt } from './frameworks/built.mjs'

const ROOT = join(import.meta.dirname, '..')
const TOOL = join(import.meta.dirname, 'frameworks')

/** Returns the exit status of the checks. */
function checkSmall() {
  const project = mkdtempSync(join(tmpdir(), 'relayscope-frameworks-'))
  try {
    const modules = join(project, 'node_modules')
    mkdirSync(modules)
    for (const name of readdirSync(join(TOOL, 'node_modules')).filter((one) => !one.startsWith('.')))
      symlinkSync(join(TOOL, 'node_modules', name), join(modules, name))
    for (const name of ['zod', 'itty-router', 'socket.io-client'])
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
    for (const part of ['package.json', 'dist'])
      cpSync(join(ROOT, part), join(modules, 'relayscope', part), { recursive: true })
    cpSync(join(ROOT, 'examples/frameworks'), project, { recursive: true })
    for (const name of ['nestjs.mjs', 'nestjs-gateway.mjs']) cpSync(join(ROOT, 'examples', name), join(project, name))
    cpSync(join(TOOL, 'ask.mjs'), join(project, 'ask.mjs'))
    writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
    return spawnSync(process.execPath, ['ask.mjs'], { cwd: project, stdio: 'inherit' }).status ?? 1
  } finally {
    rmSync(project, { recursive: true })
  }
}

const { values } = parseArgs({
  options: {
    built: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    keep: { type: 'string' },
  },
})
process.exitCode = values.built ? await checkBuilt(values) : checkSmall()
