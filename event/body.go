package event

// newBody returns an empty body for a type's name, or nil for a name this version does not know.
// A switch is the registry: adding a type without its case fails TestEveryTypeHasABody.
func newBody(t Type) Body {
	switch t {
	case TypeSessionStart:
		return new(SessionStart)
	case TypeSessionEnd:
		return new(SessionEnd)
	case TypeObserverAttached:
		return new(ObserverAttached)
	case TypeObserverLost:
		return new(ObserverLost)
	case TypeProcessFork:
		return new(ProcessFork)
	case TypeProcessExec:
		return new(ProcessExec)
	case TypeProcessExecFailed:
		return new(ProcessExecFailed)
	case TypeProcessExit:
		return new(ProcessExit)
	case TypeProcessAdopted:
		return new(ProcessAdopted)
	case TypeCgroupLeft:
		return new(CgroupLeft)
	case TypeFileOpen:
		return new(FileOpen)
	case TypeFileDelete:
		return new(FileDelete)
	case TypeFileRename:
		return new(FileRename)
	case TypeFileChange:
		return new(FileChange)
	case TypeFileMap:
		return new(FileMap)
	case TypeFileDigest:
		return new(FileDigest)
	case TypeNetConnect:
		return new(NetConnect)
	case TypeNetBind:
		return new(NetBind)
	case TypeIPCConnect:
		return new(IPCConnect)
	case TypeApprovalPrompted:
		return new(ApprovalPrompted)
	case TypeApprovalGranted:
		return new(ApprovalGranted)
	case TypeApprovalDenied:
		return new(ApprovalDenied)
	case TypeScreenUnreadable:
		return new(ScreenUnreadable)
	case TypeToolCall:
		return new(ToolCall)
	case TypeToolResult:
		return new(ToolResult)
	case TypeTurnContext:
		return new(TurnContext)
	case TypeRulesLoaded:
		return new(RulesLoaded)
	case TypePolicyApplied:
		return new(PolicyApplied)
	case TypeNetRefused:
		return new(NetRefused)
	case TypeNetInherited:
		return new(NetInherited)
	case TypeNetDNS:
		return new(NetDNS)
	case TypeNetTLSHello:
		return new(NetTLSHello)
	case TypeProxyDecision:
		return new(ProxyDecision)
	}
	if what, ok := cutEscape(t); ok {
		return &Escape{What: what}
	}
	return nil
}
