import { compile } from '@jmespath-community/jmespath'

type NamedNode = ReturnType<typeof compile>

/** The fields that an expression reads from its data directly, and the variables that it uses but does not bind. */
export type ExpressionNames = { fields: Set<string>; unbound: Set<string> }

const keepsItsInput = (node: NamedNode): boolean =>
  node.type === 'Current' || node.type === 'Identity' || node.type === 'Root'

/**
 * Walks the parts of an expression that work on the whole data (`atTop`) and those that work on a part of it. What
 * follows a pipe, a dot or a projection sees a part only, so its fields are not fields of the data.
 */
const collectNames = (
  node: NamedNode,
  atTop: boolean,
  bound: ReadonlySet<string>,
  names: ExpressionNames,
): void => {
  const both = (left: NamedNode, right: NamedNode, rightAtTop: boolean): void => {
    collectNames(left, atTop, bound, names)
    collectNames(right, rightAtTop, bound, names)
  }
  switch (node.type) {
    case 'Field':
      if (atTop) names.fields.add(node.name)
      return
    case 'Variable':
      if (!bound.has(node.name)) names.unbound.add(node.name)
      return
    case 'Subexpression':
    case 'IndexExpression':
    case 'Pipe':
      both(node.left, node.right, keepsItsInput(node.left) && (atTop || node.left.type === 'Root'))
      return
    case 'Projection':
    case 'ValueProjection':
      both(node.left, node.right, false)
      return
    case 'FilterProjection':
      both(node.left, node.right, false)
      collectNames(node.condition, false, bound, names)
      return
    case 'AndExpression':
    case 'OrExpression':
    case 'Comparator':
    case 'Arithmetic':
      both(node.left, node.right, atTop)
      return
    case 'NotExpression':
    case 'Flatten':
      collectNames(node.child, atTop, bound, names)
      return
    case 'ExpressionReference':
      collectNames(node.child, false, bound, names)
      return
    case 'Unary':
      collectNames(node.operand, atTop, bound, names)
      return
    case 'Ternary':
      collectNames(node.condition, atTop, bound, names)
      both(node.trueExpr, node.falseExpr, atTop)
      return
    case 'MultiSelectHash':
      for (const { value } of node.children) collectNames(value, atTop, bound, names)
      return
    case 'MultiSelectList':
    case 'Function':
      for (const child of node.children) collectNames(child, atTop, bound, names)
      return
    case 'LetExpression': {
      for (const { reference } of node.bindings) collectNames(reference, atTop, bound, names)
      const inner = new Set([...bound, ...node.bindings.map(({ variable }) => variable)])
      collectNames(node.expression, atTop, inner, names)
      return
    }
    default:
      return
  }
}

/** Throws when the text is not an expression. */
export const findExpressionNames = (expression: string): ExpressionNames => {
  const names: ExpressionNames = { fields: new Set(), unbound: new Set() }
  collectNames(compile(expression), true, new Set(), names)
  return names
}
