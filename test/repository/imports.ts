/** Reads the imports of every source file from its syntax tree, for the tests of layers and file length. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** The checkout. */
export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..')

/** One import of one file. `target` is a path below `src` for local files, else the package or `node:` specifier. */
export interface Import {
  target: string
  own: boolean
  typeOnly: boolean
}

/** Where the folders are that are no public entry. They are layers by their own names. */
const asLayer = (path: string) => path.replace(/^internal\//, '')

/** One file below `src`, named with forward slashes; one below `src/internal` as if it were not. */
export interface SourceFile {
  path: string
  imports: Import[]
  /** Whether it consists of imports and exports alone. */
  faceOnly: boolean
}

const trees = new Map<string, ts.SourceFile>()
/** Returns the syntax tree of a file: each is parsed once, for all tests of this process that read it. */
export function treeOf(path: string, text: string): ts.SourceFile {
  const known = trees.get(text)
  if (known) return known
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  trees.set(text, tree)
  return tree
}

function isTypeOnly(node: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(node)) return node.isTypeOnly
  return node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
}

/** The imports of `text`, the source of the file `path`: static, re-exporting, dynamic and in types; includes of Lua. */
export function importsOf(path: string, text: string): { imports: Import[]; faceOnly: boolean } {
  if (path.endsWith('.lua')) {
    const included = [...text.matchAll(/^--@include (\.\S+)$/gm)].map(([, name]) => name as string)
    const targets = included.map((name) => posix.join(posix.dirname(path), name))
    return {
      imports: targets.map((target) => ({ target: asLayer(target), own: true, typeOnly: false })),
      faceOnly: false,
    }
  }
  const source = treeOf(path, text)
  const imports: Import[] = []
  const add = (specifier: ts.Node | undefined, typeOnly: boolean) => {
    if (!specifier || !ts.isStringLiteral(specifier)) return
    const own = specifier.text.startsWith('.')
    const target = own
      ? asLayer(posix.join(posix.dirname(path), specifier.text).replace(/\.js$/, '.ts'))
      : specifier.text.startsWith('node:')
        ? specifier.text
        : specifier.text
            .split('/')
            .slice(0, specifier.text.startsWith('@') ? 2 : 1)
            .join('/')
    imports.push({ target, own, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier, isTypeOnly(node))
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false)
    ts.forEachChild(node, visit)
  }
  visit(source)
  const faceOnly = source.statements.every((node) => ts.isImportDeclaration(node) || ts.isExportDeclaration(node))
  return { imports, faceOnly }
}

/** Names of TypeScript and of Lua files. */
export const SOURCES = /\.(tsx?|lua)$/

/** Every file below `folder` with such a name, by default every TypeScript file, named with forward slashes. */
export function readFiles(folder: string, names = /\.tsx?$/): { path: string; text: string; lines: number }[] {
  const root = join(ROOT, folder)
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && names.test(entry.name))
    .map((entry) => {
      const file = join(entry.parentPath, entry.name)
      const text = readFileSync(file, 'utf8')
      return { path: relative(root, file).replaceAll('\\', '/'), text, lines: text.trimEnd().split('\n').length }
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Every TypeScript and Lua file below `src`. */
export function readSources(): SourceFile[] {
  return readFiles('src', SOURCES).map(({ path, text }) => ({ path: asLayer(path), ...importsOf(path, text) }))
}
