/** The types as one strict consumer's compiler reads them; `tools/type-matrix.mjs` goes through all of them in CI. */
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { publicDeclarations } from '../../tools/declarations.mjs'
import { createConsumer, ROOT, runIn } from './consumer.js'

const TSC = join(ROOT, 'node_modules/.bin/tsc')

it('the types resolve and compile without those of Node, and no library check is skipped', async () => {
  const consumer = await createConsumer()
  onTestFinished(() => consumer.remove())
  await cp(join(ROOT, 'tools/type-matrix/programs/portable.ts'), join(consumer.dir, 'portable.ts'))
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
  }
  await writeFile(join(consumer.dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['portable.ts'] }))
  expect(await runIn(consumer, process.execPath, [TSC]).catch(({ stdout }: { stdout: string }) => stdout)).toBe('')
})

it('the declarations contain what a public module leads to, and nothing else', () => {
  const texts = new Map([
    ['index.d.ts', "export { type Shared } from './all.js';\nexport { type Shown, open } from './a/open.js';\n"],
    [
      'a/open.d.ts',
      `import * as z from 'zod';
import { type Hidden, type Part } from '../part.js';
/** What is shown. */
export interface Shown {
    part: Part;
}
export declare const open: () => Shown;
export declare const internal: (hidden: Hidden) => z.ZodType;
`,
    ],
    ['part.d.ts', 'export type Part = Whole[];\ntype Whole = string;\nexport type Hidden = number;\nexport {};\n'],
    // The same name as one that is public, and what it alone refers to.
    ['internal.d.ts', 'export type Whole = typeof other;\nexport declare const other: string;\n'],
    ['all.d.ts', "export * from './shared.js';\nexport * from './internal.js';\nexport declare const own: number;\n"],
    ['shared.d.ts', 'export interface Shared {\n}\nexport interface Unused {\n}\n'],
  ])
  expect([...publicDeclarations(texts, ['index.d.ts'])]).toEqual([
    ['index.d.ts', "export { type Shared } from './all.js';\nexport { type Shown, open } from './a/open.js';\n"],
    [
      'a/open.d.ts',
      `import { type Part } from '../part.js';

/** What is shown. */
export interface Shown {
    part: Part;
}
export declare const open: () => Shown;
`,
    ],
    ['part.d.ts', 'export type Part = Whole[];\ntype Whole = string;\nexport {};\n'],
    ['all.d.ts', "export * from './shared.js';\n"],
    ['shared.d.ts', 'export interface Shared {\n}\n'],
  ])
})
