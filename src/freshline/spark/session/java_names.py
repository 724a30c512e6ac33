"""Remembers the Java classes and packages that Python has asked for by name.

Py4J asks Java for each part of `jvm.org.apache.spark` every time, and Java looks for a class `org` in all of
Spark's jars: milliseconds for each name, several times an update. What a name stands for does not change.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView  # type: ignore[import-untyped]


class _Remembering:
    """Keeps what was found as an attribute of its own, which Python finds first from then on."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)  # type: ignore[misc]
        kept = _KEPT.get(type(found))
        if kept is not None:
            found.__class__ = kept
            self.__dict__[name] = found
        return found


class _View(_Remembering, JVMView):  # type: ignore[misc]
    pass


class _Package(_Remembering, JavaPackage):  # type: ignore[misc]
    pass


class _Class(_Remembering, JavaClass):  # type: ignore[misc]
    pass


# Values of static fields are not kept: they may change.
_KEPT: dict[type, type] = {JavaPackage: _Package, JavaClass: _Class, JavaMember: JavaMember}


def remember_names(jvm: Any) -> None:
    """Makes this view of a Java process, and all that is found through it, remember names."""
    if type(jvm) is JVMView:
        jvm.__class__ = _View
