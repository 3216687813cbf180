/** A consumer's project in a temporary folder, with the packed package installed and no access to the repository. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const exec = promisify(execFile)

interface PackageJson {
  version: string
  exports: Record<string, string | { types: string; default: string }>
  dependencies: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

export interface Consumer {
  dir: string
  /** The files in the tarball, relative to the package. */
  files: string[]
  /** Bytes of the tarball. */
  size: number
  manifest: PackageJson
  /** Every code subpath of the packed manifest. */
  subpaths: string[]
  remove(): Promise<void>
}

/** `relayscope`, `relayscope/memory`, …: every code subpath of a manifest. */
const subpathsOf = ({ exports }: PackageJson) =>
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => `relayscope${path.slice(1)}`)

/** Those of this checkout. */
export const SUBPATHS = subpathsOf(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))

/**
 * Packs what was built, and unpacks it where npm would install it; its dependencies are those of this checkout. No
 * network. `links` are further packages that the project itself uses.
 */
export async function createConsumer(links: string[] = []): Promise<Consumer> {
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-consumer-'))
  const installed = join(dir, 'node_modules/relayscope')
  await mkdir(installed, { recursive: true })
  const { stdout } = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dir], { cwd: ROOT })
  const [packed] = JSON.parse(stdout) as { filename: string; size: number; files: { path: string }[] }[]
  if (!packed) throw new Error('npm packed nothing')
  await exec('tar', ['-xzf', join(dir, packed.filename), '--strip-components=1', '-C', installed])
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as PackageJson
  for (const name of [...Object.keys(manifest.dependencies), ...links]) {
    await mkdir(join(dir, 'node_modules', name, '..'), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  }
  await writeFile(join(dir, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
  await cp(join(ROOT, 'examples'), join(dir, 'examples'), { recursive: true })
  return {
    dir,
    manifest,
    size: packed.size,
    files: packed.files.map(({ path }) => path).sort(),
    subpaths: subpathsOf(manifest),
    remove: () => rm(dir, { recursive: true }),
  }
}

/** Runs a program of the consumer's to its end; rejects when it fails, with what it said. */
export async function runIn(consumer: Consumer, command: string, args: string[]): Promise<string> {
  const { stdout, stderr } = await exec(command, args, { cwd: consumer.dir, timeout: 300_000 })
  return stdout + stderr
}
