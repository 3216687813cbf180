/** Checks that an editor shows a docstring for every public symbol, input field, record field and method. */
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { ROOT, treeOf } from './imports.js'

/** Types whose members mirror another package, which documents them. */
const MIRRORED =
  /^(Followed\w+|BullmqQueue(Job)?|IoRedisClient|NodeRedisClient|NodeRequest|NodeResponse|NodeSocket|HonoContext|DenoServeInfo)$/

/** Helpers whose schemas have a description already. */
const DESCRIBED = /\.describe\(|\.meta\(|^(filterBy|idField|idInput)\(|^(lastAtOrBefore|byTraceId)$/

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, { types?: string }>
}
const ENTRIES = Object.values(exports).flatMap(({ types }) =>
  types ? [types.replace('./dist/', 'src/').replace('.d.ts', '.ts')] : [],
)

const sourceOf = (path: string) => treeOf(path, readFileSync(join(ROOT, path), 'utf8'))

/** The local file that a re-export reads from, or `undefined` for a package. */
function targetOf(path: string, { moduleSpecifier }: ts.ExportDeclaration): string | undefined {
  if (!moduleSpecifier || !ts.isStringLiteral(moduleSpecifier) || !moduleSpecifier.text.startsWith('.'))
    return undefined
  const target = posix.join(posix.dirname(path), moduleSpecifier.text)
  return ['.ts', '.tsx'].map((end) => target.replace(/\.js$/, end)).find((file) => existsSync(join(ROOT, file)))
}

const hasDocstring = (node: ts.Node) => ts.getJSDocCommentsAndTags(node).length > 0

const isExported = (node: ts.Node) =>
  ts.canHaveModifiers(node) && (node.modifiers ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)

/** The names that a statement declares. */
function declaredBy(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText())
  const { name } = statement as { name?: ts.Node }
  return name ? [name.getText()] : []
}

interface Found {
  path: string
  name: string
  statement: ts.Statement
}

/** Every declaration that a file exports, its own and re-exported ones. */
function exportsOf(path: string): Found[] {
  return sourceOf(path).statements.flatMap((statement): Found[] => {
    if (!ts.isExportDeclaration(statement))
      return isExported(statement) ? declaredBy(statement).map((name) => ({ path, name, statement })) : []
    const target = targetOf(path, statement)
    if (target === undefined) return []
    const found = exportsOf(target)
    const { exportClause } = statement
    if (!exportClause || !ts.isNamedExports(exportClause)) return found
    const names = new Set(exportClause.elements.map(({ name, propertyName }) => (propertyName ?? name).getText()))
    return found.filter(({ name }) => names.has(name))
  })
}

/** The members of an interface or class without a docstring. */
function undocumentedMembers({ name, statement }: Found): string[] {
  if (!ts.isInterfaceDeclaration(statement) && !ts.isClassDeclaration(statement)) return []
  if (MIRRORED.test(name)) return []
  const members: readonly (ts.TypeElement | ts.ClassElement)[] = statement.members
  const isHidden = (member: ts.Node) =>
    ts.canHaveModifiers(member) &&
    (member.modifiers ?? []).some(
      ({ kind }) => kind === ts.SyntaxKind.PrivateKeyword || kind === ts.SyntaxKind.OverrideKeyword,
    )
  return members.flatMap((member) =>
    member.name && !ts.isPrivateIdentifier(member.name) && !isHidden(member) && !hasDocstring(member)
      ? [`${name}.${member.name.getText()}`]
      : [],
  )
}

/** The fields of the schemas in a declaration that have neither a docstring nor a description. */
function undocumentedFields({ name, statement }: Found): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(z\.\w*[oO]bject|inputObject|defineOptions)$/.test(node.expression.getText())) {
      const [shape] = node.arguments
      for (const field of shape && ts.isObjectLiteralExpression(shape) ? shape.properties : [])
        if (ts.isPropertyAssignment(field) && !hasDocstring(field) && !DESCRIBED.test(field.initializer.getText()))
          found.push(`${name}.${field.name.getText()}`)
    }
    ts.forEachChild(node, visit)
  }
  if (ts.isVariableStatement(statement)) visit(statement)
  return found
}

describe.each(ENTRIES)('the docstrings of %s', (entry) => {
  const found = exportsOf(entry)

  it('cover every exported symbol', () => {
    expect(found.length).toBeGreaterThan(0)
    const documented = new Set(found.flatMap(({ name, statement }) => (hasDocstring(statement) ? [name] : [])))
    expect(found.flatMap(({ path, name }) => (documented.has(name) ? [] : [`${path} ${name}`]))).toEqual([])
  })

  it('cover every member and every field of an input or record', () => {
    const missing = found.flatMap((one) =>
      [...undocumentedMembers(one), ...undocumentedFields(one)].map((name) => `${one.path} ${name}`),
    )
    expect([...new Set(missing)]).toEqual([])
  })
})
