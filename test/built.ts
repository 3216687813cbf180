/** Builds the package before the tests that need it built, unless what is in `dist` is newer than every source. */
import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = [
  'src',
  'tools/build.mjs',
  'tools/dashboard-assets.mjs',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
]

function newest(path: string): number {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}

function isBuilt(): boolean {
  const built = statSync(join(ROOT, 'dist/index.d.ts'), { throwIfNoEntry: false })
  return built !== undefined && SOURCES.every((source) => newest(join(ROOT, source)) < built.mtimeMs)
}

export default function setup(): void {
  if (isBuilt()) return
  const { status, stdout, stderr } = spawnSync('npm', ['run', 'build', '--silent'], { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the package cannot be built\n${stdout}${stderr}`)
}
